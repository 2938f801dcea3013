// Package pause decides which objects to pause, and which have acknowledged. Moves, Pauses, and the
// tasks Pause and Resume use it; other tools can.
//
// A pause is one write on a root (a Cluster, a ClusterClass). Whether a controller has observed it
// is decided for each object below the root by comparing its state with its state just before the
// pause, never by comparing clocks.
//
// The package is pure: package pause/hold writes to clusters. This package never contains clients
// or clocks, and never lifts a user's pause.
package pause
