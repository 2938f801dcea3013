// Package schema describes the data of events as JSON Schemas, for other programs. It derives them from the Go types that write the events, so the
// two cannot differ.
//
// This package never contains a schema that is written by hand.
package schema
