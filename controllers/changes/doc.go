// Package changes notifies controllers of changes in a view of the log, as a source.Channel. The
// projection never waits for a controller: changes are queued.
//
// What never may live here: what a controller does about a change.
package changes
