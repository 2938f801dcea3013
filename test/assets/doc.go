// Package assets finds the server binaries of the test bed (etcd, kube-apiserver, kube-controller-manager) and builds
// those that are missing from their Go modules, once per version, into the ignored folder .testbed of the checkout.
//
// It also knows where the modules lie whose manifests the test bed installs. It never starts a process other than the
// go command, and knows nothing about clusters.
package assets
