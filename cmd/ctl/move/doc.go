// Package move implements the commands of scutectl about moves. It reads moves from the API server
// or from the event log alone, shows them, creates a Move, and records an operator's decisions.
//
// This package never contains a rule of a move. The daemon and the log decide what may be done.
package move
