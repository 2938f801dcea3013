// Package move reconciles the Move resource: its spec becomes a request in the log, the log's view becomes its status.
//
// What never may live here: a decision about a move, and the log itself.
package move
