// Package job implements the task kind Job, which runs a Kubernetes Job to its end.
//
// What never may live here: what the Job does.
package job
