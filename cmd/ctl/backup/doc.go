// Package backup implements the commands of scutectl that back up clusters to a folder and restore
// them, and that show BackupSchedules.
//
// This package never decides which objects belong to a cluster (package mover), never reads or
// creates them (mover/transfer), does not know the format of the folder (mover/archive), and never
// decides when a scheduled backup is created or deleted (backup/schedule).
package backup
