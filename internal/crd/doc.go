// Package crd holds scute's own definitions against objects: what a cluster would refuse is refused without one, for the same
// reason.
package crd
