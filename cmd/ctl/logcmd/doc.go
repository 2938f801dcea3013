// Package logcmd holds the commands `scutectl log`: they read the event log, move it, and reconcile it.
//
// What never may live here: the meaning of an event (package fact), and the way to the log (package connect).
package logcmd
