// Package projector folds the event log into views: it replays, follows, knows when it has caught up, and keeps
// snapshots, which are caches and may be deleted or damaged at any time without harm.
//
// A view is a fold and nothing else: the same records in the same order give the same view, byte for byte.
//
// What never may live here: a decision, an append, anything of Kubernetes, the meaning of any event.
package projector
