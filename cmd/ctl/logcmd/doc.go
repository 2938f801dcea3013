// Package logcmd holds the commands `scutectl log`: they read the event log, close its epochs, reconcile it, and push local runs to another one.
//
// What never may live here: the meaning of an event (package fact), and the way to the log (package connect).
package logcmd
