// Package move reconciles Moves: the spec becomes a request, the log's view becomes the status.
//
// This package never contains decisions about a move, or the log itself.
package move
