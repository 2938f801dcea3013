// Package kube reaches one Kubernetes API server: which kinds it serves that Cluster API moves, paged lists, and calls
// with a deadline that are tried again only where that can help.
//
// What never may live here: decisions, and any knowledge of the event log.
package kube
