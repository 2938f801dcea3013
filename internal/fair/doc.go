// Package fair shares the workers of a queue, and other slots, fairly between namespaces: a
// namespace with a long queue does not delay the objects of other namespaces.
//
// This package never contains the work itself.
package fair
