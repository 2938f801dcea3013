// Package export is the lossless text form of an event log: one commit per line, with its header and data as they are stored, so
// that it can be verified without a server.
//
// The first line is a Head, every other one a Line. What never may live here: what an event means.
package export
