// Package request is the pure core of the resource Pause: what has happened to a pause that was asked for (Event, State), and what
// follows from what one look at its clusters shows (Decide).
//
// A Pause is over only when it was released: a timeout, a cluster that is gone, an object that takes its word back are recorded,
// and it continues to look. What never may live here: clients, clocks, and the rules of who must acknowledge (package pause).
package request
