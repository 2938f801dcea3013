// Package catchup delays reconciles until the view contains all commits that the log had at the start, and the daemon may act on the log. That
// usually takes a moment. If the log is not the one that was used last, it takes until an operator confirms the log.
package catchup
