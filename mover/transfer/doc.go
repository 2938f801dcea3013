// Package transfer performs the steps of a move against the two API servers. Every step observes,
// then acts. Any process may therefore repeat it, at any time, after a crash. The results are
// returned to the core as outcomes. All state is in the log or in the clusters.
//
// This package never contains decisions (package mover) or the event log (package mover/runner).
package transfer
