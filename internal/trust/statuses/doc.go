// Package statuses reads the high-water mark of an event log from the statuses of scute's resources. It does not need the Lease, so that the mark
// exists without leader election and after the Lease was deleted.
//
// This package never interprets the mark (package trust does).
package statuses
