// Package api tests the schemas of scute's resources against a real kube-apiserver. It also tests that an unreadable
// object does not affect others, and compares the responses that package kube expects with those of a real API server.
package api
