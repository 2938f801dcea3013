// Package trust decides whether a daemon may act on an event log. It must be the log with which a
// daemon last acted on this management cluster, and must contain all commits that it acknowledged.
// The package writes and reads the aggregate daemon/log.
//
// This package never decides what to do about a log that may not be used. Only HighestMark reads
// the API server.
package trust
