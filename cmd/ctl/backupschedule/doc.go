// Package backupschedule implements the commands of scutectl that show BackupSchedules. They read the API server, or only the event log.
//
// This package never decides when a backup is created or deleted (package backup/schedule).
package backupschedule
