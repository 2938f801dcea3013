// Package resume implements the task kind Resume, which ends the pause of a Pause.
//
// What never may live here: how a pause is set or lifted (package tasks/pause).
package resume
