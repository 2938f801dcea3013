// Package deletion implements the task kind Delete, which deletes objects and waits until they are
// gone. A rollback creates them again.
//
// This package reaches clusters only by package task/access.
package deletion
