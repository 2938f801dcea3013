// Package runner drives moves: it connects the log, the pure core and the effects. It claims a move
// by an event before it acts on it, so that a replaced holder can append nothing more and stops.
//
// This package never contains rules of a move, or Kubernetes clients.
package runner
