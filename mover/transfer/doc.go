// Package transfer performs the steps of a move against the two API servers. Every step observes,
// then acts, so that it may be performed any number of times, by any process, after a crash at any
// instant. Its results are returned to the core as outcomes; this package stores nothing that is
// not in the log or in the clusters.
//
// What never may live here: decisions (package mover), and the event log (package mover/runner).
package transfer
