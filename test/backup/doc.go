// Package backup tests backups of clusters on the real stack: what scutectl writes of clusters of one management cluster is restored
// in another one when the first is dead, and no machine is made, removed or replaced.
package backup
