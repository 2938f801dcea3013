// Package resource contains what the controllers of scute's resources share: they learn of changes
// in the view of the log, end work in the log whose resource was deleted, and write finalizers,
// conditions and the status.
//
// This package never decides anything about a resource; the resource's controller does.
package resource
