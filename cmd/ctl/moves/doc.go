// Package moves reads Moves: from the resource in a management cluster, or from the event log alone. Both give the same
// thing, so that a caller that prints one need not know which it was.
//
// What never may live here: printing, and any write.
package moves
