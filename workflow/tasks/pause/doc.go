// Package pause implements the task kinds Pause and Resume. Pause pauses Cluster API, Flux or EKS
// Anywhere, and its undo restores the earlier state; Resume does so before the run ends.
//
// This package never decides when a Cluster API object has acknowledged a pause (package
// scute.dev/pause).
package pause
