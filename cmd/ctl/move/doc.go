// Package move holds the commands `scutectl move ...`: they make a Move, show it, follow it, and ask for its end.
//
// What never may live here: a rule of a move. What may be done and when is for the daemon and the log to say.
package move
