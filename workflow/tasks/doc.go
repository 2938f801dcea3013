// Package tasks registers the task kinds that a manifest can name. Each kind is a package below.
//
// What never may live here: a decision about the run.
package tasks
