// Package deletion is the kind of task Delete: it deletes objects, waits until they are gone, and creates them again in
// a rollback.
//
// What never may live here: how a cluster is reached.
package deletion
