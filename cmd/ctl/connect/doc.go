// Package connect connects scutectl to the management cluster and to the event log, which is in a
// folder, on a NATS server, or in the daemon's pod behind a port-forward. Every operation has a
// timeout, and every error names a remedy.
//
// This package never interprets the objects and events that it reads.
package connect
