// Package runner drives moves: it joins the log, the pure core (package mover) and the effects (package
// mover/transfer). It claims a move by an event before it acts on it, so that a holder who was replaced can append
// nothing more and lets go.
//
// What never may live here: rules of a move, and Kubernetes.
package runner
