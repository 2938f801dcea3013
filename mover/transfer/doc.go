// Package transfer performs the steps of a move against the two API servers. Every step observes, then acts, so that
// it may be performed any number of times, by any process, after a death at any instant. What came of it goes back to
// the core as outcomes; nothing is remembered here that the log or the clusters do not hold.
//
// What never may live here: decisions (package mover), and the event log (package mover/runner).
package transfer
