// Package volume accesses a volume that may hang, without blocking its caller. An operation that
// hangs is abandoned, and no other begins on that volume before it has returned.
//
// What never may live here: what is written there, and how an error says it.
package volume
