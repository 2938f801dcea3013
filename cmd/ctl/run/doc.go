// Package run implements the commands of scutectl about runs. It reads runs from an event log,
// which has every event, or from WorkflowRun resources, which have a status. It drives local runs
// in this process, with the engine of the daemon.
//
// This package never contains the rules of a run (package workflow).
package run
