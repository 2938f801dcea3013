// Package embedded opens an event log with a NATS server inside this process, on a folder that it locks. Every acknowledged commit has been synced
// to disk. It is separate from package eventlog, so that a program that reads a log over the network does not link the server.
//
// This package never contains code that an external log needs, too.
package embedded
