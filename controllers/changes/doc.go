// Package changes notifies controllers of changes in a view of the log, as a source.Channel. The
// projection never waits for a controller: changes are queued.
//
// This package never decides what a controller does about a change.
package changes
