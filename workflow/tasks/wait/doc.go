// Package wait implements the task kind Wait, which waits for a state of objects.
//
// What never may live here: a write to a cluster.
package wait
