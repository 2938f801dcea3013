// Package changes sends changes in a projection of the log to the controllers that publish them, as a source.Channel of controller-runtime. The
// projection never waits for a controller: changes are gathered until the controller reads them.
//
// This package never decides what a controller does about a change.
package changes
