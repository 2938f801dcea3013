// Package cluster creates, upgrades and deletes clusters of Cluster API for all providers. It
// applies their objects, waits until a cluster is initialized, available, upgraded or gone, and
// stores the kubeconfig of its API server.
//
// This package never contains code for a single provider, and never orders tasks.
package cluster
