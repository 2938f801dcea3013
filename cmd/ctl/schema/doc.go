// Package schema describes the data of events as JSON Schemas, for other programs. They are made
// from the Go types that write the events, so that they cannot differ from them.
//
// What never may live here: a schema that is written by hand.
package schema
