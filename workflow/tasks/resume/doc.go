// Package resume implements the task kind Resume, which lifts the pause of a Pause before the run ends.
//
// This package never contains how a pause is set or lifted (package tasks/pause).
package resume
