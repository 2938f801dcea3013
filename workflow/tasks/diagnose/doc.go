// Package diagnose is the kind of task Diagnose: it collects what tells why something failed: objects, their
// conditions, events and logs.
//
// What never may live here: a write to a cluster but that of the collection, and a judgement of the cause.
package diagnose
