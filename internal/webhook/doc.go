// Package webhook posts the events of the log to an HTTP receiver, as CloudEvents in binary mode: in order, each at least once.
//
// Nothing is skipped. An event that the receiver refuses stops the delivery, until an operator decides. What never may live
// here: anything that holds up a writer of the log.
package webhook
