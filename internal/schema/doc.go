// Package schema validates objects against the schema of their kind with kube-apiserver's library.
package schema
