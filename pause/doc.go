// Package pause decides which objects to pause, and which have acknowledged. Moves and the tasks
// Pause and Resume build on it; any tooling can.
//
// Setting a pause is one write on a root (a Cluster, a ClusterClass). Whether the controllers below heard of it is
// another matter: each object is judged against what it said just before the pause, never by comparing clocks.
//
// It is pure. The writes live in pause/hold. What never may live here: clients, clocks, and any way to lift a pause
// that a user had set.
package pause
