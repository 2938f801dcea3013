// Package backupschedule has scutectl's commands about BackupSchedules: they read them, from the resource in a management cluster or
// from the event log alone, and show them.
//
// What never may live here: when a backup is made, and what is removed (package mover/schedule).
package backupschedule
