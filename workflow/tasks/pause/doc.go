// Package pause is the kind of task Pause: it keeps the controllers of Cluster API, Flux or EKS Anywhere still, and
// restores what it found.
//
// What never may live here: when an object of Cluster API is at rest (package scute.dev/pause).
package pause
