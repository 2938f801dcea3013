// Package move reconciles Moves: the spec becomes a request, the log's view becomes the status.
//
// What never may live here: a decision about a move, and the log itself.
package move
