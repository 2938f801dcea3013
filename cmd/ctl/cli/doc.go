// Package cli holds what every command of scutectl has at hand: its streams, its clock, the colors it may use, and the
// codes it ends with. Data goes to Out, all else to Err.
//
// What never may live here: anything of Kubernetes, of the log, or of one command.
package cli
