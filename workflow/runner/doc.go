// Package runner drives runs: it connects the log, the pure core and the task kinds. It claims a
// run with an event before it acts, so a holder that was replaced can append nothing more and gives
// up the run.
//
// One goroutine owns the state of a run. It collects the results of effects, decides until nothing
// more follows, stores the events as one commit, and only then starts the effects of this commit.
// So a chain of tasks costs one commit per task, and a wide graph far less.
//
// This package never contains rules of a run, or Kubernetes clients.
package runner
