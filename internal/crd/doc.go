// Package crd holds scute's own definitions against objects, by the library with which kube-apiserver does it: what a
// cluster would refuse is refused without one, for the same reason.
package crd
