// Package cloud is the one infrastructure that all management clusters of a test bed share, and the witness of what
// they do to it: Cluster API's in-memory provider, with a journal of every write that says who made it, and snapshots
// that tell whether two moments saw the same machines.
//
// It must never write to the cloud by itself, and knows nothing about management clusters but their names.
package cloud
