// Package earlier holds an event log that an earlier version of scute wrote, and what that version said of it, for tests that open it
// with this one: runs, moves and remediations in all phases, many of them left behind by a process that died.
//
// What never may live here: anything that a program imports.
package earlier
