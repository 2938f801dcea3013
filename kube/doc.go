// Package kube is a client of one Kubernetes API server. It discovers the kinds that a move of Cluster API moves, lists objects page by page, and
// sends requests with a timeout. It retries a request only if a retry can succeed.
//
// This package never contains decisions or knowledge of the event log.
package kube
