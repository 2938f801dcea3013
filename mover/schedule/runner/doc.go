// Package runner drives BackupSchedules: it joins the log, the pure core (package mover/schedule), what reads the clusters (package
// mover/transfer), what writes a backup (package mover/archive) and where it is kept (package mover/store).
//
// A backup is made in a folder of this machine and then copied to its destination, its list of checksums last. A process that is
// killed leaves no backup: the next one looks whether it was complete, records that, and begins again. What never may live here: a
// decision.
package runner
