// Package lifecycle tests the kinds of tasks that deal with management clusters as a whole on the real stack: Pause,
// Resume, Move, Providers and Diagnose, and that waits end only when a cluster is settled.
package lifecycle
