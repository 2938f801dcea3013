// Package fair shares the workers of a queue, and other slots, fairly between namespaces. However
// much one of them has queued, the objects of another get their turn.
//
// This package never contains the work itself.
package fair
