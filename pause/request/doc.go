// Package request is the pure core of the resource Pause. Event and State record what has happened
// to a pause, and Decide returns what follows from one observation of its clusters.
//
// A Pause is over only when it was released: a timeout, a cluster that is gone, an object that takes its word back are recorded,
// and it continues to look. What never may live here: clients, clocks, and the rules of who must acknowledge (package pause).
package request
