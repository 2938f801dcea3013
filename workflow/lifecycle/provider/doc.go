// Package provider defines what the named workflows need of a provider, and creates, upgrades and
// deletes clusters of Cluster API for all providers. A provider installs its own components on a
// cluster, installs the network, and converts the specification of a cluster into objects of
// Cluster API. Each interface has one concern, and each workflow (packages management and workload)
// requires only the interfaces that it uses.
//
// A provider never decides the order of tasks. It keeps no state between two calls, because the next call may happen in another process. Package
// lifecycle has a provider for manifests with variables.
//
// This package never contains the order of the tasks, or code for a single provider.
package provider
