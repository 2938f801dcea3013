// Package request is the pure core of the resource Pause. Event and State record a pause, and
// Decide returns the events that follow from one observation of its clusters. A Pause ends only by
// its release. After a timeout, a deleted cluster, or a withdrawn acknowledgement, the evaluation
// continues.
//
// This package never contains clients or clocks, and never decides which objects must acknowledge (package pause).
package request
