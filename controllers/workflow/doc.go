// Package workflow reconciles WorkflowRuns: the spec becomes a request, the log's view becomes the
// status.
//
// What never may live here: a decision about a run, and the log itself.
package workflow
