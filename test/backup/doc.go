// Package backup tests that clusters are restored from a backup in another management cluster. The first management
// cluster is down, and no machine is created, deleted or replaced. Backups are written by scutectl, or by a
// BackupSchedule to a real S3-compatible store.
package backup
