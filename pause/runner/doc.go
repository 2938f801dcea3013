// Package runner drives Pauses. It connects the log, the pure core, and the writes to clusters.
//
// A Pause is driven as long as it exists: it is set, acknowledged, evaluated at long intervals, and
// restored when it is released. Every write is idempotent and reads the object first, so the next
// process can continue after a crash. This package never contains a decision.
package runner
