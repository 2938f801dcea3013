// Package export encodes an event log as text, one commit per line, without loss. So it can be
// verified without a server.
//
// The first line is a Head, every other one a Line. What never may live here: what an event means.
package export
