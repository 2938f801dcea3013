// Package runner drives runs. It connects the log, the pure core (package workflow) and the kinds of tasks (package workflow/task). It stores a claim
// of a run before it acts on the run, so that the previous holder can append nothing more and stops.
//
// One goroutine owns the state of a run. It collects the results of effects, decides until nothing more follows, stores the events as one commit, and
// only then starts the effects of this commit. So a chain of tasks costs one commit a task, and a wide graph far less.
//
// This package never contains rules of a run, or clients of Kubernetes.
package runner
