// Package stack installs Cluster API on an API server and runs its real controllers. These are core, kubeadm bootstrap,
// kubeadm control plane and the in-memory infrastructure provider, with their admission webhooks.
//
// The manifests are those of the Go modules, and the reconcilers are the exported ones. The package contains no fake
// controllers.
package stack
