// Package v1alpha1 contains scute's Kubernetes resources: a user's request (spec) and a projection of the event log (status). A status can be
// deleted: the daemon writes it again from the log.
//
// This package never contains behaviour. The domain packages decide, from the log.
//
// +kubebuilder:object:generate=true
// +groupName=scute.dev
package v1alpha1
