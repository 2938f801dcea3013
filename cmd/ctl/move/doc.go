// Package move is all that scutectl has about moves: it reads them, from the resource in a management cluster or from the event
// log alone; it shows them; and it holds the commands about them: they make a Move, and say what an operator decides about it.
//
// What never may live here: a rule of a move. What may be done and when is for the daemon and the log to say.
package move
