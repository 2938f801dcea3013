// Package projector folds the event log into views: it replays, follows, and reports when it caught
// up.
//
// A view is a fold and nothing else: the same records in the same order give the same view, byte for byte.
//
// What never may live here: a decision, an append, anything of Kubernetes, the meaning of any event.
package projector
