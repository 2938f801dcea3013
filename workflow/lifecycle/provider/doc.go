// Package provider defines what the named workflows need of a provider, and creates, upgrades and
// deletes clusters of Cluster API for all providers. A provider installs its own components on a
// cluster, installs the network, and converts the specification of a cluster to Cluster API
// objects. Each interface has one concern. Each workflow (packages management and workload)
// requires only the interfaces that it uses.
//
// The workflows consist of steps with typed contexts (Begin, Then). The context after a step is
// built from the context before it and the step's output, which is in the log. So a step's context
// is the same after a restart, and the compiler checks that an earlier step has set what a step
// needs.
//
// A provider never decides the order of tasks. It keeps no state between two calls, because the
// next call may happen in another process. Package lifecycle has a provider for manifests with
// variables.
//
// This package never contains the order of the tasks, or code for a single provider.
package provider
