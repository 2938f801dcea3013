// Package cluster has scutectl's commands that back up clusters to a folder and restore them from it.
//
// What never may live here: which objects belong to a cluster (package mover), how they are read and made (mover/transfer), and the
// format of the folder (mover/archive).
package cluster
