// Package runner drives remediations: it connects the log, the pure core, the Observer and the
// Executor. A turn is one reconciliation of one owner: facts, the decisions that follow from them,
// the log, the writes that are due. OwnerReconciler are triggered by watches; a turn that finds
// nothing new sends no request. An owner is claimed by an event before anything is written for it,
// so that a replaced leader cannot append anything more and stops.
//
// What never may live here: rules, and Kubernetes.
package runner
