// Package supervise drives unfinished moves and runs, and shares their places fairly between
// namespaces. It knows only ids and namespaces.
//
// A change in the view puts an id into a client-go workqueue, in which the namespaces take turns. What is due is driven by one
// goroutine until it has nothing more to do, a bounded number at once. What is still due then is driven again after a
// backoff.
//
// What never may live here: what it means to drive something, or a decision about it.
package supervise
