// Package fair shares the workers of a queue, or anything else that there is little of, between namespaces: what one of them has
// queued, however much it is, does not keep the objects of another from their turn.
//
// What never may live here: what is done in a turn.
package fair
