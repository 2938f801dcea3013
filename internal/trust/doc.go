// Package trust decides whether a daemon may act on an event log. It must be the log that acted
// last on this management cluster, with all that it acknowledged. It writes and reads the aggregate
// daemon/log.
//
// This package never decides what to do about a log that may not be used. Only Mark reads the API server.
package trust
