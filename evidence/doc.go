// Package evidence publishes the checkpoints of the event log to a ConfigMap, a folder or a witness. A
// writer of the log does not control these destinations.
//
// This package never contains how a log is sealed (package eventlog/seal does), or who is notified of a violation.
package evidence
