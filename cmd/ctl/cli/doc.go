// Package cli contains what all commands of scutectl share: streams, clock, colors and exit codes. Data is written to Out, everything else to Err.
//
// This package never contains code for Kubernetes, for the log, or for a single command.
package cli
