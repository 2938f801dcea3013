// Package tasks has the kinds of tasks that a manifest can name, and registers them.
//
// What never may live here: a decision about the run.
package tasks
