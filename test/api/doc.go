// Package api tests the schemas of scute's resources against a real kube-apiserver. It also tests
// that an object which cannot be read does not affect others. It also compares what package kube
// expects of answers with a real API server's.
package api
