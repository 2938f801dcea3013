// Package position stores the position of a consumer of the event log in the management cluster.
//
// This package never processes events.
package position
