// Package provider implements `scutectl doctor provider`, which pauses a test cluster and measures acknowledgements. For each kind below the cluster
// it reports whether and how fast its objects acknowledged the pause, and whether they resumed.
//
// This package never contains the conditions under which an object is paused, or any write except of the Pause.
package provider
