// Package kube connects to a Kubernetes API server: discovery, paged lists, and calls with
// deadlines, which are retried only if that can help.
//
// This package never contains decisions or knowledge of the event log.
package kube
