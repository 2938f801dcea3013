// Package move reconciles the Move resource: it records the spec as a request in the log, and writes the log's view into the status.
//
// This package never contains decisions about a move, or the log itself.
package move
