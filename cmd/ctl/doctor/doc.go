// Package doctor finds what an installation lacks: it checks the connection to the cluster, Cluster
// API, scute, the log, and leftovers of earlier work. It changes nothing.
//
// This package never contains a repair. Each finding names its remedy, and a human applies it.
package doctor
