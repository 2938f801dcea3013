// Package runs reads runs: from an event log, which has all of them with every fact, or from the WorkflowRun resource, which
// has what a status can hold. It reads the manifests that runs are made of, too.
//
// What never may live here: what a run looks like on a screen, and a decision about a run.
package runs
