// Package mover moves Cluster API clusters between management clusters. It is the pure core: it
// computes which objects belong to a cluster (graph), the order in which they are created (plan),
// what has happened so far (State, Apply), and what follows from it (Decide, Next).
//
//	outcome -> Decide(state, outcome, now) -> []Event -> the log -> Apply -> Next(state) -> a step -> outcome ...
//
// Every function is deterministic and total: no clock, no I/O, no goroutine. A State is the result
// of applying events, so a move that is killed at any instant continues from the log. Package
// mover/transfer performs the steps; package mover/runner runs the loop.
//
// This package never contains Kubernetes clients, NATS, or the content of an object. An object is a
// reference, a UID, and a hash. A Secret has no hash either, because a hash lets a reader guess a
// short secret.
package mover
