// Package workflow is the pure core of runs. Build validates a definition, Apply applies events to
// a State, and Decide returns the next events.
//
//	outcome or command -> Decide(state, input, now) -> []Event -> the log -> Apply -> effects to perform -> outcome ...
//
// An outcome is the result of a task; a verdict is what the outcome means for the other tasks.
// Edges depend only on verdicts. Apply tracks which tasks are ready in time proportional to the
// edges of the event's task, so a decision costs the same with a hundred tasks and with a hundred
// thousand.
//
// Every function is deterministic and total: no clock, no I/O, no goroutines. Package
// workflow/runner drives runs, workflow/task contains the effects, workflow/manifest converts
// manifests to definitions, and workflow/lifecycle contains the six named workflows.
//
// This package never contains Kubernetes or NATS clients, files, randomness, or the time of day.
package workflow
