// Package pause implements the task kind Pause, which pauses Cluster API, Flux or EKS Anywhere. Its
// undo restores the earlier state.
//
// What never may live here: when an object of Cluster API is at rest (package scute.dev/pause).
package pause
