// Package backupschedule implements the commands of scutectl that show BackupSchedules. They read
// them from the resource, or from the event log alone.
//
// What never may live here: when a backup is made, and what is removed (package mover/schedule).
package backupschedule
