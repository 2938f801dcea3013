// Package cli has what all commands of scutectl share: streams, clock, colors and exit codes. Data
// goes to Out, all else to Err.
//
// What never may live here: anything of Kubernetes, of the log, or of one command.
package cli
