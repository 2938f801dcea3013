// Package transfer performs the steps of a move against the two API servers. Every step observes
// before it acts, so any process may repeat it at any time after a crash. It returns results to the
// core as outcomes. All state is in the log or in the clusters.
//
// This package never contains decisions (package mover) or the event log (package mover/runner).
package transfer
