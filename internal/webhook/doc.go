// Package webhook posts the events of the log as CloudEvents to an HTTP receiver, at least once. It
// posts them in order, in binary mode.
//
// Nothing is skipped. An event that the receiver refuses stops the delivery, until an operator decides. What never may live
// here: anything that holds up a writer of the log.
package webhook
