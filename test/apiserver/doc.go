// Package apiserver runs a real Kubernetes API server on this machine. It starts etcd, kube-apiserver and the
// garbage-collector and namespace controllers of kube-controller-manager as child processes, with RBAC and
// ServiceAccount tokens.
//
// There are no nodes, no scheduler and no workloads. The package is independent of Cluster API.
package apiserver
