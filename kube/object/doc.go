// Package object defines references to Kubernetes objects, and the observed facts that decisions
// need. It is pure: it reads decoded objects, never a cluster.
//
// This package never contains clients, or the content of Secrets.
package object
