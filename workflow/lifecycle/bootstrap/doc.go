// Package bootstrap provides the temporary cluster that manages a management cluster without one.
// It is used while a management cluster is created, upgraded or deleted. It exists already, or the
// program kind creates it on this machine.
//
// This package never installs anything on the cluster.
package bootstrap
