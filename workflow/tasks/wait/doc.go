// Package wait is the kind of task Wait: it waits until objects are as they should be.
//
// What never may live here: a write to a cluster.
package wait
