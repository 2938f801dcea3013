// Package fair shares the workers of a queue between namespaces: what one of them has queued, however much it is, does
// not keep the objects of another from their turn.
//
// What never may live here: what a worker does in a turn.
package fair
