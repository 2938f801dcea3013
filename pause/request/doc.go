// Package request is the pure core of the resource Pause. Event and State record what has happened
// to a pause, and Decide returns the events that follow from one observation of its clusters. A
// Pause ends only by its release. After a timeout, the deletion of a cluster, or a withdrawn
// acknowledgement, it continues to evaluate the objects.
//
// This package never contains clients or clocks, and never decides which objects must acknowledge (package pause).
package request
