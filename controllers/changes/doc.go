// Package changes carries what has changed in a projection of the log to the controllers that show it, as a source.Channel of
// controller-runtime. The projection never waits for a controller: what it adds is gathered until it is taken.
//
// What never may live here: what a controller does about a change.
package changes
