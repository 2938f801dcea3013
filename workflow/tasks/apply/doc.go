// Package apply implements the task kind Apply, which applies manifests. It waits until the objects
// are ready. Its undo restores the earlier state.
//
// This package reaches clusters only through package task/access, and never schedules the tasks
// that Expand returns.
package apply
