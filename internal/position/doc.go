// Package position keeps in the management cluster how far a consumer of the event log has come.
//
// What never may live here: what is done with the events.
package position
