// Package volume accesses a volume that may hang, without blocking its caller. An operation that
// hangs is abandoned, and no other begins on that volume before it has returned.
//
// This package never contains the operations, or their error messages.
package volume
