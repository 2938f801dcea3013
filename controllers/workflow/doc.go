// Package workflow reconciles the WorkflowRun resource: its spec becomes a request for a run in the log, the log's view
// becomes its status.
//
// What never may live here: a decision about a run, and the log itself.
package workflow
