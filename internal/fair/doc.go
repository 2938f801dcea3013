// Package fair shares the workers of a queue fairly between namespaces. However much one of them
// has queued, the objects of another get their turn.
//
// What never may live here: what is done in a turn.
package fair
