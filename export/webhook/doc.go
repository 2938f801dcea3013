// Package webhook posts the events of the log as CloudEvents to an HTTP receiver, at least once. It
// posts them in order, in binary mode.
//
// No event is skipped. An event that the receiver rejects stops the delivery until an operator decides.
//
// This package never delays a writer of the log.
package webhook
