// Package consume delivers the events of a log to another program, in order and at least once.
//
// It needs little of a log (Log), and it does not link the NATS server: a program connects with eventlog.Connect. Its events
// are CloudEvents, with the sequence of their commit and the ID of their log.
//
// What never may live here: a format of somebody who receives events, and anything that writes to a log.
package consume
