// Package mover moves Cluster API clusters between management clusters. It is the pure core: which
// objects belong to a cluster (graph), in what order they travel (plan), what has happened so far
// (State, Apply) and what follows from it (Decide, Next).
//
//	outcome -> Decide(state, outcome, now) -> []Event -> the log -> Apply -> Next(state) -> a step to perform -> outcome ...
//
// Every function here is deterministic and total: no clock, no I/O, no goroutine. A state is a fold of events, so a
// move that is killed at any instant continues from the log. The effects live in mover/transfer, the loop that joins
// the two in mover/runner.
//
// What never may live here: Kubernetes clients, NATS, and the content of any object (an object is a reference, a UID,
// and a hash; of a Secret not even a hash, because a hash is an oracle for short secrets).
package mover
