// Package embedded opens an event log with a NATS server in this process, on a locked folder. Every
// acknowledged commit has been synced to disk. It is separate from package eventlog, so that a
// program that reads a log over the network does not link the server.
//
// This package never contains code that an external log also needs.
package embedded
