// Package runner drives BackupSchedules: it connects the log, the pure core, and the stores.
// Package mover/transfer reads the clusters, mover/archive writes a backup, and backup/store stores
// it.
//
// A backup is written to a local folder and then copied to its destination, its list of checksums
// last. If the process is killed, the next one checks whether the backup is complete, records the
// result, and continues.
//
// This package never contains decisions.
package runner
