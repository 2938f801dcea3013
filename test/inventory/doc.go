// Package inventory says what a management cluster has of the clusters of a namespace, and what moves, pauses and
// remediations have left behind there. It has no notion of scute's own of what belongs to a cluster.
package inventory
