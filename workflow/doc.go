// Package workflow is the pure core of runs. Build validates a definition, Apply applies events to
// a State, and Decide returns the next events.
//
//	outcome or command -> Decide(state, input, now) -> []Event -> the log -> Apply -> effects to perform -> outcome ...
//
// An outcome is the result of a task, and a verdict is its meaning for the other tasks. Edges
// depend on verdicts only. Apply updates which tasks are ready in time proportional to the edges of
// the event's task, so that a decision costs the same in a run of a hundred tasks and of a hundred
// thousand.
//
// Every function here is deterministic and total: no clock, no I/O, no goroutine. Package
// workflow/runner drives runs, workflow/task has the effects, workflow/manifest converts manifests
// to definitions, and workflow/lifecycle has the six named workflows.
//
// This package never contains a client of Kubernetes or NATS, files, randomness, or the time of day.
package workflow
