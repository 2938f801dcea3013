// Package tasks registers the kinds of tasks that a manifest can name. Each kind is a package below.
//
// This package never contains decisions about the run.
package tasks
