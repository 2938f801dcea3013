// Package provider defines the interfaces between the named workflows and a provider, which installs its components on a cluster, installs the
// network, and converts the specification of a cluster into Cluster API objects. Each interface has one concern. Each workflow (packages management
// and workload) requires only the interfaces that it uses.
//
// A provider never decides the order of tasks. It keeps no state between two calls, because the next call may happen in another process. Package
// provider/manifest is a provider for manifests with variables.
//
// This package never contains the order of the tasks, or code for a single provider.
package provider
