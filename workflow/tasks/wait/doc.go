// Package wait implements the task kind Wait, which waits for a state of objects.
//
// This package never writes to a cluster.
package wait
