// Package lifecycle tests the task kinds for management clusters on the real stack. These are
// Pause, Resume, Move, Providers and Diagnose. It also tests that waits end only when a cluster is
// settled.
package lifecycle
