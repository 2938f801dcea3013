// Package audit implements `scutectl audit`, which verifies an event log or an export against
// published checkpoints.
//
// What never may live here: how a log is sealed and verified (eventlog/seal).
package audit
