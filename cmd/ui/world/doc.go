// Package world computes the state of a log at a commit: runs, moves, Pauses and owners.
//
// What never may live here: reading of a log, and how anything is shown.
package world
