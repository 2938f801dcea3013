// Package schema validates objects with the schema of their kind, without a cluster. It uses the library of kube-apiserver, so that it rejects what a
// cluster would reject.
package schema
