// Package v1alpha1 contains scute's Kubernetes resources. A spec contains what a user requests. A status is a
// projection of the event log: if it is deleted, the daemon writes it again from the log.
//
// This package never contains behaviour. The domain packages decide, from the log.
//
// +kubebuilder:object:generate=true
// +groupName=scute.dev
package v1alpha1
