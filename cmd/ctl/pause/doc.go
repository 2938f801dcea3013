// Package pause implements the commands of scutectl about Pauses, and the commands that pause and
// resume clusters.
//
// This package never defines what a pause of a cluster means.
package pause
