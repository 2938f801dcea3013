// Package pause implements the commands of scutectl about Pauses, and those that pause and resume
// clusters.
//
// What never may live here: what it means that a cluster is paused.
package pause
