// Package runner drives remediations. It connects the log, the decisions of package remediator, the
// Observer and the Executor. A turn is one reconciliation of one owner: it reads the facts, records
// the events that follow, and performs the writes that are due. Watches trigger turns; a turn
// without changes sends no request. An owner is claimed by an event before anything is written for
// it, so that a replaced leader can append nothing more and stops.
//
// This package never contains rules or Kubernetes clients.
package runner
