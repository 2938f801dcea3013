// Package archive stores the objects of clusters in a folder, optionally encrypted. The folder has
// one file for each object, encrypted with age if there are recipients, an index with the order and
// the owners of the objects, and a list of checksums, which is written last. A folder without that
// list is not an archive. The package also reads the folders that clusterctl move --to-directory
// writes.
//
// This package never contains Kubernetes clients, or rules about which objects belong to a cluster
// (package mover).
package archive
