// Package move implements the task kind Move, which moves clusters to another management cluster.
// It does so in this process or with a Move resource.
//
// This package never contains a step of a move (packages mover and mover/transfer).
package move
