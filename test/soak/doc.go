// Package soak plans the faults of the soak test and checks its invariants, without I/O. Plan has
// the faults and their times, World has their effects so far. The same seed gives the same faults.
//
// What never may live here: a client, a process, a clock or a goroutine. test/cmd/soak performs the faults on the real
// stack, looks at the world, and asks this package whether what it saw is right.
package soak
