// Package catalog lists the kinds of Cluster API's providers, with their labels. These are the labels of their
// manifests and of clusterctl. The CustomResourceDefinitions of a provider that has a Go module come from that module:
// those of Cluster API itself in the version of this module, the others pinned in modules/go.mod. The kinds of all
// other providers are in kinds.yaml. The chart's value `providers` is generated from the catalog.
//
// No provider is compiled: only the YAML files of its module are read.
package catalog
