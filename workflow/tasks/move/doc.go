// Package move implements the task kind Move, which moves clusters to another management cluster.
// It does so in this process or by a Move resource.
//
// What never may live here: a step of a move (packages mover and mover/transfer).
package move
