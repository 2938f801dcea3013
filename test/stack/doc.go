// Package stack installs Cluster API on an API server and runs its real controllers. These are
// core, kubeadm bootstrap, kubeadm control plane and the in-memory infrastructure provider, with
// their admission webhooks.
//
// The manifests come from the Go modules, the reconcilers are the exported ones. Nothing here imitates a controller.
package stack
