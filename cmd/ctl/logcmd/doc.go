// Package logcmd implements the commands `scutectl log`, which read, move and reconcile the event
// log.
//
// This package never contains the meaning of an event (package kit), or the connection to the log
// (package connect).
package logcmd
