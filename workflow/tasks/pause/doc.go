// Package pause implements the task kind Pause, which pauses Cluster API, Flux or EKS Anywhere. Its undo restores the earlier state.
//
// This package never decides when an object of Cluster API is at rest (package scute.dev/pause).
package pause
