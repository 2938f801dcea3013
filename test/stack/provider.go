package stack

import (
	"path/filepath"

	"scute.dev/test/assets"
)

// provider is one provider of Cluster API as clusterctl would install it.
type provider struct {
	name, kind string // as in clusterctl's inventory
	label      string // value of cluster.x-k8s.io/provider
	namespace  string
	config     string // folder with crd/bases and webhook/manifests.yaml
	version    string
}

func providers(modules assets.Modules) []provider {
	version := assets.VersionOf(modules.ClusterAPI)
	return []provider{{
		name: "cluster-api", kind: "CoreProvider", label: "cluster-api", namespace: "capi-system",
		config: filepath.Join(modules.ClusterAPI, "core", "config"), version: version,
	}, {
		name: "kubeadm", kind: "BootstrapProvider", label: "bootstrap-kubeadm", namespace: "capi-kubeadm-bootstrap-system",
		config: filepath.Join(modules.ClusterAPI, "bootstrap", "kubeadm", "config"), version: version,
	}, {
		name: "kubeadm", kind: "ControlPlaneProvider", label: "control-plane-kubeadm", namespace: "capi-kubeadm-control-plane-system",
		config: filepath.Join(modules.ClusterAPI, "controlplane", "kubeadm", "config"), version: version,
	}, {
		name: "docker", kind: "InfrastructureProvider", label: "infrastructure-docker", namespace: "capd-system",
		config: filepath.Join(modules.ClusterAPITest, "infrastructure", "docker", "config"), version: assets.VersionOf(modules.ClusterAPITest),
	}}
}
