// Package audit publishes the checkpoints of the event log to a ConfigMap, a folder or a witness. A
// writer of the log does not control these destinations.
//
// A checkpoint that is not consistent with the one that a place holds is never published over it. What never may live here: how a
// log is sealed (eventlog/seal), and who is told of a violation.
package audit
