// Package crd validates objects against scute's own CustomResourceDefinitions without a cluster.
package crd
