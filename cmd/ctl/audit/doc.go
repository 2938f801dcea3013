// Package audit is `scutectl audit`: it holds an event log, or an export of it, against the checkpoints that the daemon
// published.
//
// What never may live here: how a log is sealed and verified (eventlog/seal).
package audit
