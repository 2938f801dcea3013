// Package inventory lists the objects of a namespace, and leftovers of moves, pauses and
// remediations. It does not use scute's rules for what belongs to a cluster.
package inventory
