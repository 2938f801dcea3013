// Package v1alpha1 contains scute's Kubernetes resources: what a user requests (spec) and a projection of the event log
// (status). A status can be deleted: the daemon writes it again from the log.
//
// What never may live here: behaviour. Decisions are taken in the domain packages, from the log.
//
// +kubebuilder:object:generate=true
// +groupName=scute.dev
package v1alpha1
