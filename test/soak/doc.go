// Package soak is the pure part of the soak test: which faults happen when (Plan), what they have done to the world so
// far (World), and what must hold meanwhile (the invariants). The same seed gives the same faults.
//
// What never may live here: a client, a process, a clock or a goroutine. test/cmd/soak performs the faults on the real
// stack, looks at the world, and asks this package whether what it saw is right.
package soak
