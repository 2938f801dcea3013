// Package provider defines what the named workflows need of a provider. A provider installs its own
// components on a cluster, installs the network, and converts the specification of a cluster into
// objects of Cluster API. Each interface has one concern, and each workflow (packages management
// and workload) asks for those that it uses and no other.
//
// A provider never decides what runs when, and it keeps nothing between two calls: the next one may come in another
// process. Package provider/manifest is a provider that is made of manifests with variables.
//
// What never may live here: the order of the tasks, and what only one provider needs.
package provider
