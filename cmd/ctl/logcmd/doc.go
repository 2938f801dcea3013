// Package logcmd implements the commands `scutectl log`, which read, move and reconcile the event
// log.
//
// What never may live here: the meaning of an event (package fact), and the way to the log (package connect).
package logcmd
