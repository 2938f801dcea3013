// Package cluster implements the commands of scutectl that back up clusters to a folder and restore
// them.
//
// This package never decides which objects belong to a cluster (package mover), never reads or creates them (mover/transfer), and
// does not know the format of the folder (mover/archive).
package cluster
