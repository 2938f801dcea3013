// Package job implements the task kind Job, which runs a Kubernetes Job to its end.
//
// This package never contains the work of a Job.
package job
