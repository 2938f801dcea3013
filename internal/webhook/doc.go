// Package webhook posts the events of the log to an HTTP receiver, as CloudEvents in binary mode: in order, each at least once.
//
// No event is skipped. An event that the receiver rejects stops the delivery until an operator decides.
//
// This package never delays a writer of the log.
package webhook
