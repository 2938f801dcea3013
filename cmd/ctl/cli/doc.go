// Package cli contains what all commands of scutectl share: streams, clock, the output formats of
// kubectl, exit codes, and the drawing of text: tables, bars, times, colors, and a display that is
// redrawn in place. Data is written to Out, everything else to Err.
//
// This package never contains code for the API server, for the log, or for a single command.
package cli
