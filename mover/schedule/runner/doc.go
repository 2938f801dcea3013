// Package runner drives BackupSchedules: it connects the log, the pure core, and the stores.
// Package mover/transfer reads the clusters, mover/archive writes a backup, and mover/store keeps
// it.
//
// A backup is made in a folder of this machine and then copied to its destination, its list of checksums last. A process that is
// killed leaves no backup: the next one looks whether it was complete, records that, and begins again. What never may live here: a
// decision.
package runner
