// Package crd contains the generated CustomResourceDefinitions of scute's resources. It validates objects against
// definitions, without a cluster.
package crd
