// Package trust decides whether a daemon may act on an event log. It must be the log that acted
// last on this management cluster, with all that it acknowledged. It writes and reads the aggregate
// daemon/log.
//
// What never may live here: I/O, and what is done about a log that may not be acted on.
package trust
