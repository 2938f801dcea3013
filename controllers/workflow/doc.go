// Package workflow reconciles the WorkflowRun resource: it records the spec as a request for a run in the log, and writes the log's view into the
// status.
//
// This package never contains decisions about a run, or the log itself.
package workflow
