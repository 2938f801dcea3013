// Package deletion implements the task kind Delete, which deletes objects and waits until they are
// gone. A rollback creates them again.
//
// What never may live here: how a cluster is reached.
package deletion
