// Package local kills scutectl while it drives local runs, at every commit to the log, and holds the end against that of a
// run that nobody disturbed.
package local
