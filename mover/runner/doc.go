// Package runner drives moves: it connects the log, the pure core and the effects. It claims a move
// by an event before it acts on it, so that a replaced holder cannot append anything more and
// stops.
//
// What never may live here: rules of a move, and Kubernetes.
package runner
