// Package volume works on a volume that may hang even if a context ends. An operation that hangs is abandoned, so that it does not block others, and
// no other operation starts on the volume before it has returned.
//
// This package never contains the operations, or their error messages.
package volume
