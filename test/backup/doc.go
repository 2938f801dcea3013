// Package backup tests backups of clusters on the real stack: what scutectl writes of clusters of one management cluster is restored
// in another one when the first is dead, and no machine is made, removed or replaced; so is what a BackupSchedule wrote
// to a real S3-compatible store.
package backup
