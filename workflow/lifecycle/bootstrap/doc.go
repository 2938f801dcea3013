// Package bootstrap provides the temporary cluster that manages a management cluster without one.
// It is used while a management cluster is created, upgraded or deleted. It exists already, or the
// program kind creates it on this machine.
//
// What never may live here: what is installed on it.
package bootstrap
