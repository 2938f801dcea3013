// Package audit implements `scutectl audit`, which verifies an event log or an export against
// published checkpoints.
//
// This package never contains how a log is sealed and verified (eventlog/seal).
package audit
