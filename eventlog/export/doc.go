// Package export reads and writes the lossless text form of an event log. Each line is one commit, with its stored header and data, so that it can
// be verified without a server.
//
// The first line is a Head, and every other line is a Line. This package never contains the meaning of an event.
package export
