// Package export encodes an event log as text, one commit per line, without loss. So it can be
// verified without a server.
//
// The first line is a Head, and every other line is a Line. This package never contains the meaning of an event.
package export
