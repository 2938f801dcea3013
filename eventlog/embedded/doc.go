// Package embedded opens an event log with a NATS server in this process, on a locked folder. Every
// acknowledged commit has been synced to disk. It is apart from package eventlog, so that a program
// which reads a log over the network does not link the server.
//
// This package never contains code that an external log needs, too.
package embedded
