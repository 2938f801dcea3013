// Package soak plans the faults of the soak test and checks its invariants, without I/O. Plan has the faults and their
// times, World has their effects so far. The same seed gives the same faults.
//
// It must not contain a client, a process, a clock or a goroutine. test/cmd/soak performs the faults on the real stack,
// observes it, and asks this package whether the observations are correct.
package soak
