// Package earlier contains an event log that an earlier version of scute wrote, and the output of that version about it, for tests that open the log
// with this version. It contains runs, moves and remediations in all phases, many of them left by a process that was killed.
//
// This package is never imported by a program.
package earlier
