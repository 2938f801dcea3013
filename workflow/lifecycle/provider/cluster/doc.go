// Package cluster does what all providers have in common with a cluster of Cluster API: applies its objects, waits until
// it is initialized, available, upgraded or gone, deletes it, and keeps the way to its API server.
//
// What never may live here: what only one provider needs, and the order of the tasks.
package cluster
