// Package remediator replaces unhealthy machines without putting a control plane at risk. It
// contains the decisions: Judge finds unhealthy machines, Decide returns the events that follow
// from facts, Apply applies events to the State, and Actions returns the requests to the owner that
// are due.
//
//	facts -> Decide(state, facts, now) -> []Event -> the log -> Apply -> Actions(state, facts) -> the owner -> facts ...
//
// One aggregate is one owner of machines: a control plane, a MachineDeployment, a MachineSet. It
// decides about all of its machines together, so that no two machines of one control plane are
// replaced at once.
//
// Every function is deterministic and total, without a clock, I/O or goroutines. Package
// remediator/observe reads the facts, remediator/act performs the actions, and remediator/runner
// connects them with the log.
//
// This package never contains Kubernetes clients, NATS, a way to delete a Machine (only its owner
// may), or guesses: a missing fact is unknown, and every decision is more careful then.
package remediator
