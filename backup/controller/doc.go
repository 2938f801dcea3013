// Package controller reconciles BackupSchedules: the spec becomes events, the log's view
// becomes the status.
//
// This package never decides when to make a backup or what to remove (package backup/schedule does).
package controller
