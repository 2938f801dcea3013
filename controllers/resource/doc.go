// Package resource contains what the controllers of scute's resources share. They watch the view of
// the log, end work whose resource was deleted, and write finalizers, conditions and the status.
//
// This package never decides anything about a resource; the resource's controller does.
package resource
