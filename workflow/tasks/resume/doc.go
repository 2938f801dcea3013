// Package resume implements the task kind Resume, which ends the pause of a Pause.
//
// This package never contains how a pause is set or lifted (package tasks/pause).
package resume
