// Package move implements the commands of scutectl about moves. It reads moves from the resource or
// from the event log alone, shows them, creates a Move, and records an operator's decisions.
//
// What never may live here: a rule of a move. What may be done and when is for the daemon and the log to say.
package move
