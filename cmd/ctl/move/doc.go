// Package move implements the commands of scutectl about moves. It reads moves from the API server
// or only from the event log, shows them, creates a Move, and records an operator's decisions.
//
// This package never contains a rule of a move. The daemon and the log decide what may be done and when.
package move
