// Package archive stores the objects of clusters in a folder, optionally encrypted. It has one file
// for each object, encrypted with age if there are recipients, an index with their order and their
// owners, and a list of checksums, which is written last. A folder without that list is no archive.
// It also reads the folders that clusterctl move --to-directory writes.
//
// What never may live here: Kubernetes clients, and which objects belong to a cluster (package mover).
package archive
