// Package fair shares the workers of a queue, or another limited resource, between namespaces: the objects of a namespace do not wait for all objects
// that another namespace has queued.
//
// This package never contains the work itself.
package fair
