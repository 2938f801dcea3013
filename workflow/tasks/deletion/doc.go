// Package deletion implements the task kind Delete, which deletes objects, waits until they are gone, and creates them again in a rollback.
//
// This package never connects to clusters.
package deletion
