// Package stack installs Cluster API on a Kubernetes API and runs its real controllers in this process: core, kubeadm
// bootstrap, kubeadm control plane and the in-memory infrastructure provider, with their admission webhooks.
//
// The manifests come from the Go modules, the reconcilers are the exported ones. Nothing here imitates a controller.
package stack
