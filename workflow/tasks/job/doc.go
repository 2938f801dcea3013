// Package job is the kind of task Job: it runs a Job of Kubernetes to its end.
//
// What never may live here: what the Job does.
package job
