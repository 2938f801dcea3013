// Package trust decides whether a daemon may act on an event log: whether it is the log that acted last on this management
// cluster, and whether it still holds all that it acknowledged. It writes and reads the aggregate daemon/log.
//
// What never may live here: I/O, and what is done about a log that may not be acted on.
package trust
