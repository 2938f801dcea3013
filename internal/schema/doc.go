// Package schema holds objects against the schema of their kind, by the library with which kube-apiserver does it: what a
// cluster would refuse is known without asking it.
package schema
