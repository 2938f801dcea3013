// Package spool keeps the commits of a log in a file of this machine, with an index in memory, so that any moment of the past can be
// read again at once, wherever the log is.
//
// What never may live here: what an event means.
package spool
