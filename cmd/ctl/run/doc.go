// Package run is all that scutectl has about runs: it reads them, from an event log, which has all of them with every event, or
// from the WorkflowRun resource, which has what a status can hold; it shows them; and it holds the commands about them: run,
// get, describe, watch, logs, pause, resume, decide, migrate. A local run is driven in this process, with the engine that the
// daemon has.
//
// What never may live here: the rules of a run (package workflow).
package run
