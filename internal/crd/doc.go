// Package crd validates objects with scute's own CustomResourceDefinitions, without a cluster. It rejects what a cluster would reject, for the same
// reasons.
package crd
