// Package projector applies the event log to views: it replays the log, follows it, and reports when a view has caught up.
//
// A view depends only on the records: the same records in the same order produce the same view, byte for byte.
//
// This package never contains decisions, appends, Kubernetes, or the meaning of any event.
package projector
