// Package api tests scute's resources against a real kube-apiserver: what their schemas refuse, and that an object which
// cannot be read harms nobody but itself. It also compares what package kube expects of answers with a real API server's.
package api
