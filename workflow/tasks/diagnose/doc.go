// Package diagnose implements the task kind Diagnose, which collects objects, conditions, events
// and logs.
//
// What never may live here: a write to a cluster but that of the collection, and a judgement of the cause.
package diagnose
