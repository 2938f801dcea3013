// Package position stores the position of a consumer of the event log in the management cluster.
//
// What never may live here: what is done with the events.
package position
