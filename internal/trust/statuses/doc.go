// Package statuses reads an event log's high-water mark from the statuses of scute's resources. The
// mark exists without leader election, and when the Lease was deleted.
//
// What never may live here: what follows from the mark, which package trust decides.
package statuses
