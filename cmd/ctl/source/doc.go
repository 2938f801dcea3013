// Package source reads things of one kind, moves or runs or remediations, from where they are: from the resource in a
// management cluster, or from the event log alone. Both give the same thing, so that a caller that prints one need not know
// which it was.
//
// What never may live here: what is special about a kind, printing, and any write.
package source
