// Package runner drives runs: it connects the log, the pure core and the task kinds. It claims a
// run by an event before it acts on it, so that a holder who was replaced can append nothing more
// and releases the run.
//
// One goroutine holds the state of a run. It gathers the result of effects, decides until nothing follows any more, and
// stores all of it as one commit; only then are the effects started that the commit speaks of. So a chain of tasks costs
// one commit a task, and a wide graph far less.
//
// What never may live here: rules of a run, and Kubernetes.
package runner
