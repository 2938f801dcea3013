// Package source reads moves, runs or remediations from their resources, or from the event log alone. Both return the same type, so that a caller
// that prints it need not know the source.
//
// This package never contains details of a kind, printing, or writes.
package source
