// Package run implements the commands of scutectl about runs. It reads runs from an event log, with
// every event, or from WorkflowRuns, which have only a status. It drives local runs in this
// process, with the engine of the daemon.
//
// This package never contains the rules of a run (package workflow).
package run
