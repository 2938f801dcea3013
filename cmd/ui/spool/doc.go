// Package spool stores the commits of a log in a local file, to read any past moment fast. Its
// index is in memory.
//
// What never may live here: what an event means.
package spool
