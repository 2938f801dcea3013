// Package consume delivers the events of a log to another program, in order and at least once.
//
// It needs only a Log, and does not link the NATS server: a program connects with eventlog.Connect.
// Its events are CloudEvents, with the sequence of their commit and the ID of their log.
//
// This package never contains a receiver's format, or anything that writes to a log.
package consume
