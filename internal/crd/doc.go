// Package crd validates objects against CustomResourceDefinitions, above all scute's own, without a cluster.
package crd
