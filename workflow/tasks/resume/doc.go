// Package resume is the kind of task Resume: it lifts the pause of a Pause before the run ends.
//
// What never may live here: how a pause is set or lifted (package tasks/pause).
package resume
