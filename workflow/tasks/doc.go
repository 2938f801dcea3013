// Package tasks registers the kinds of tasks that a manifest can name. What a kind does is in package task.
//
// What never may live here: what a task does.
package tasks
