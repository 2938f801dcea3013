// Package earlier contains an event log of an earlier version of scute, for tests. It has runs,
// moves and remediations in all phases, many of them interrupted, and the statuses of that version.
//
// This package is never imported by a program.
package earlier
