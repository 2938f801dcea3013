// Package statuses reads an event log's high-water mark from the statuses of scute's resources. The
// mark exists without leader election, and when the Lease was deleted.
//
// This package never interprets the mark (package trust does).
package statuses
