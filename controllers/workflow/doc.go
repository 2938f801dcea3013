// Package workflow reconciles WorkflowRuns: the spec becomes a request, the log's view becomes the
// status.
//
// This package never contains decisions about a run, or the log itself.
package workflow
