// Package runner drives moves: it connects the log, the pure core and the effects. It claims a move
// by an event before it acts, so a replaced holder cannot append any more and stops.
//
// This package never contains rules of a move, or Kubernetes clients.
package runner
