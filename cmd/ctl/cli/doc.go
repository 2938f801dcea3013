// Package cli contains what all commands of scutectl share: streams, clock, output formats, exit
// codes, and the drawing of tables, bars, times and colors. Data is written to Out, everything else
// to Err.
//
// This package never contains code for the API server, for the log, or for a single command.
package cli
