// Package provider is `scutectl doctor provider`: it pauses a test cluster by a Pause, and says of each kind below it whether and
// how fast its objects acknowledged, and whether they are awake again after it.
//
// What never may live here: what it means that an object is paused, and any write but that of the Pause.
package provider
