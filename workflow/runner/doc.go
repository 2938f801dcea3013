// Package runner drives runs: it connects the log, the pure core and the task kinds. It claims a
// run by an event before it acts on it, so that a holder who was replaced can append nothing more
// and releases the run.
//
// One goroutine owns the state of a run. It collects the results of effects, decides until nothing
// more follows, stores the events as one commit, and only then starts the effects of this commit.
// So a chain of tasks costs one commit a task, and a wide graph far less.
//
// This package never contains rules of a run, or clients of Kubernetes.
package runner
