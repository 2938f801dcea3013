// Package backupschedule reconciles the BackupSchedule resource: its spec becomes what the log is told to do, and the log's view
// becomes its status.
//
// What never may live here: when a backup is made, and what is removed (package mover/schedule).
package backupschedule
