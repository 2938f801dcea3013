// Package object defines references to Kubernetes objects, and the observed facts that decisions
// need. It is pure: it reads decoded objects and never a cluster.
//
// What never may live here: clients, and the content of Secrets.
package object
