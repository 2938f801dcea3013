// Package tasks registers the task kinds that a manifest can name. Each kind is a package below.
//
// This package never contains decisions about the run.
package tasks
