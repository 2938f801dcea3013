// Package doctor finds out what is missing to work here: the way to the cluster, Cluster API, scute, permissions, the
// log, and what an earlier undertaking left behind. It changes nothing.
//
// What never may live here: a repair. Each finding names its remedy, and a human applies it.
package doctor
