// Package diagnose implements the task kind Diagnose, which collects objects, conditions, events
// and logs.
//
// This package never writes to a cluster except for the collection, and never judges the cause.
package diagnose
