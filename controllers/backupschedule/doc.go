// Package backupschedule reconciles BackupSchedules: the spec becomes events, the log's view
// becomes the status.
//
// What never may live here: when a backup is made, and what is removed (package mover/schedule).
package backupschedule
