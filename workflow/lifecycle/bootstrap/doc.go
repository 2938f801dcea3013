// Package bootstrap provides the temporary cluster that manages a management cluster during its creation, upgrade or deletion. The temporary cluster
// exists already, or the program kind creates it on this machine.
//
// This package never installs anything on the cluster.
package bootstrap
