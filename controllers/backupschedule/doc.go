// Package backupschedule reconciles the BackupSchedule resource: it records the spec in the log, and writes the log's view into the status.
//
// This package never decides when to make a backup or what to remove (package mover/schedule does).
package backupschedule
