// Package provider implements `scutectl doctor provider`, which pauses a test cluster and measures
// acknowledgements. For each kind below the cluster it reports whether and how fast its objects
// acknowledged the pause, and whether they resumed.
//
// What never may live here: what it means that an object is paused, and any write but that of the Pause.
package provider
