// Package logcmd holds the commands `scutectl log ...`: they read the event log and write nothing to it.
//
// What never may live here: the meaning of an event (package fact), and the way to the log (package reach).
package logcmd
