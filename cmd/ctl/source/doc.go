// Package source reads moves, runs or remediations from their resources, or from the event log
// alone. Both return the same type, so that a caller that prints it need not know the source.
//
// What never may live here: what is special about a kind, printing, and any write.
package source
