// Package move is the kind of task Move: it moves clusters to another management cluster, in this process or by a Move
// resource.
//
// What never may live here: a step of a move (packages mover and mover/transfer).
package move
