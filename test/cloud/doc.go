// Package cloud is the in-memory infrastructure of a test bed, with a journal and snapshots. All management clusters
// share it. The journal has every write with its author, and snapshots show whether two moments have the same machines.
//
// The package must never write to the cloud by itself, and knows only the names of management clusters.
package cloud
