// Package audit publishes the checkpoints of the event log to places that a writer of the log does not control: a ConfigMap, a folder, a witness. It
// never replaces a place's checkpoint by a checkpoint that is not consistent with it.
//
// This package never contains how a log is sealed (package eventlog/seal does), or who is notified of a violation.
package audit
