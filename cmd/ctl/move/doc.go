// Package move holds the commands about moves: they make a Move, and say what an operator decides about it.
//
// What never may live here: a rule of a move. What may be done and when is for the daemon and the log to say.
package move
