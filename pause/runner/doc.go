// Package runner drives Pauses: it connects the log, the pure core and the writes.
//
// A Pause is driven for as long as it exists: it is set, acknowledged, watched at a slow pace, and restored when it is released.
// Every write can be repeated, and looks at the object first, so a process that is killed leaves nothing that the next one does not
// find. What never may live here: a decision.
package runner
