// Package supervise drives the unfinished objects of a view of the log (moves, runs), and shares workers fairly between namespaces. It knows only
// IDs and namespaces.
//
// A change in the view enqueues an ID in a client-go workqueue, in which the namespaces alternate. One goroutine drives an object until it has nothing
// more to do; the number of objects that are driven at once is bounded. An object that is still due then is driven again after a backoff.
//
// This package never contains the work itself, or a decision about it.
package supervise
