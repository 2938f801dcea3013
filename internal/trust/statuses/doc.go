// Package statuses reads the high-water mark of an event log that the statuses of scute's resources keep. It needs no Lease: it
// is there without leader election, and when the Lease was deleted.
//
// What never may live here: what follows from the mark, which package trust decides.
package statuses
