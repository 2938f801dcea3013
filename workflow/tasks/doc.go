// Package tasks has the kinds of tasks that a manifest can name, and registers them. A kind is here or in a package below.
//
// What never may live here: a decision about the run.
package tasks
