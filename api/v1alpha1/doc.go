// Package v1alpha1 holds scute's Kubernetes resources: what a user asks for (spec) and a projection of what the event
// log says came of it (status). A status can be thrown away: the daemon writes it again from the log.
//
// What never may live here: behaviour. Decisions are taken in the domain packages, from the log.
//
// +kubebuilder:object:generate=true
// +groupName=scute.dev
package v1alpha1
