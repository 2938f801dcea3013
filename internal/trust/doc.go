// Package trust decides whether a daemon may use an event log: the log must be the log that was used last on this management cluster, and must still
// contain all commits that it acknowledged. It encodes and decodes the events of the aggregate daemon/log.
//
// This package never does I/O, and never decides what to do about a log that may not be used.
package trust
