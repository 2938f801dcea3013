// Package workflow is the pure core of runs. Build makes and validates a definition, State and
// Apply record what has happened, and Decide returns what follows.
//
//	outcome or command -> Decide(state, input, now) -> []Event -> the log -> Apply -> effects to perform -> outcome ...
//
// Outcome and verdict are two things: an outcome is the result of a task, a verdict what it means for the rest. Edges look
// at verdicts only. Readiness is kept up to date by Apply in time proportional to the edges that an event touches, so that
// a decision costs the same in a run of a hundred tasks and of a hundred thousand.
//
// Every function here is deterministic and total: no clock, no I/O, no goroutine. The loop that joins the core with the
// log and the effects is in workflow/runner, the effects in workflow/task, the way from a
// manifest to a definition in workflow/manifest, and the six named workflows in workflow/lifecycle.
//
// What never may live here: a client of Kubernetes or NATS, files, randomness, and the time of day.
package workflow
