// Package wait implements the task kind Wait, which waits until objects reach a state.
//
// This package never writes to a cluster.
package wait
