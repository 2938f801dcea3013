// Package projector folds the event log into views: it replays, follows, and reports when it caught
// up.
//
// A view depends only on the records: the same records in the same order produce the same view, byte for byte.
//
// This package never contains decisions, appends, Kubernetes, or the meaning of any event.
package projector
