package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// A generated cluster has three control plane machines, five workers, and perCluster objects in all. Its objects are
// those of a cluster of the kubeadm providers.
const (
	perCluster    = 45
	controlPlanes = 3
	machinesEach  = 8
)

// kind is a kind of the generated objects.
type kind struct {
	group, version, name, plural string
	// acknowledges means that a controller sets its condition Paused.
	acknowledges bool
}

// The groups of the kinds.
const (
	coreGroup           = "cluster.x-k8s.io"
	controlPlaneGroup   = "controlplane.cluster.x-k8s.io"
	bootstrapGroup      = "bootstrap.cluster.x-k8s.io"
	infrastructureGroup = "infrastructure.cluster.x-k8s.io"
)

// kinds returns the kinds of the generated objects, owners first.
func kinds() []kind {
	return []kind{
		{coreGroup, "v1beta2", "Cluster", "clusters", true},
		{infrastructureGroup, "v1beta2", "DevCluster", "devclusters", true},
		{infrastructureGroup, "v1beta2", "DevMachineTemplate", "devmachinetemplates", false},
		{bootstrapGroup, "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates", false},
		{controlPlaneGroup, "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes", true},
		{coreGroup, "v1beta2", "MachineDeployment", "machinedeployments", true},
		{coreGroup, "v1beta2", "MachineSet", "machinesets", true},
		{coreGroup, "v1beta2", "Machine", "machines", true},
		{infrastructureGroup, "v1beta2", "DevMachine", "devmachines", true},
		{bootstrapGroup, "v1beta2", "KubeadmConfig", "kubeadmconfigs", true},
		{"", "v1", "Secret", "secrets", false},
	}
}

func (k kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: k.plural}
}

func kindNamed(name string) kind {
	for _, k := range kinds() {
		if k.name == name {
			return k
		}
	}
	panic("no kind " + name)
}

// specimenObject is one object of a generated cluster.
type specimenObject struct {
	kind, name string
	owner      string // "Kind/name"; the owner comes first
	finalizer  bool
	content    map[string]any
}

// generate returns the objects of a cluster, owners first.
func generate(cluster string) []specimenObject {
	plane, pool := cluster+"-control-plane", cluster+"-md-0"
	template := func(bootstrap bool, infrastructure, config string) map[string]any {
		spec := map[string]any{"clusterName": cluster, "version": "v1.36.0", "infrastructureRef": reference(infrastructureGroup, "DevMachine"+infrastructure, config)}
		if bootstrap {
			spec["bootstrap"] = map[string]any{"configRef": reference(bootstrapGroup, "KubeadmConfig"+infrastructure, config), "dataSecretName": config}
		}
		return spec
	}
	selector := map[string]any{"matchLabels": map[string]any{"pool": pool}}
	workers := map[string]any{"metadata": map[string]any{"labels": map[string]any{"pool": pool}}, "spec": template(true, "Template", pool)}
	unstructured.RemoveNestedField(workers, "spec", "bootstrap", "dataSecretName")
	list := []specimenObject{
		{"Cluster", cluster, "", true, map[string]any{"spec": map[string]any{
			"controlPlaneRef": reference(controlPlaneGroup, "KubeadmControlPlane", plane), "infrastructureRef": reference(infrastructureGroup, "DevCluster", cluster),
			"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)},
		}}},
		{"DevCluster", cluster, "Cluster/" + cluster, true, map[string]any{"spec": map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}}}},
		{"DevMachineTemplate", plane, "Cluster/" + cluster, false, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": devMachine()}}}},
		{"DevMachineTemplate", pool, "Cluster/" + cluster, false, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": devMachine()}}}},
		{"KubeadmConfigTemplate", pool, "Cluster/" + cluster, false, map[string]any{"spec": map[string]any{"template": map[string]any{"spec": kubeadmConfig()}}}},
		{"KubeadmControlPlane", plane, "Cluster/" + cluster, true, map[string]any{"spec": map[string]any{
			"replicas": int64(controlPlanes), "version": "v1.36.0", "kubeadmConfigSpec": kubeadmConfig(),
			"machineTemplate": map[string]any{"spec": map[string]any{"infrastructureRef": reference(infrastructureGroup, "DevMachineTemplate", plane)}},
		}}},
		{"MachineDeployment", pool, "Cluster/" + cluster, true, map[string]any{"spec": map[string]any{
			"clusterName": cluster, "replicas": int64(machinesEach - controlPlanes), "selector": selector, "template": workers,
		}}},
		{"MachineSet", pool, "MachineDeployment/" + pool, true, map[string]any{"spec": map[string]any{
			"clusterName": cluster, "replicas": int64(machinesEach - controlPlanes), "selector": selector, "template": workers,
		}}},
	}
	for _, use := range []string{"ca", "etcd", "sa", "proxy", "kubeconfig"} {
		list = append(list, specimenObject{"Secret", cluster + "-" + use, "KubeadmControlPlane/" + plane, false, secret("cluster.x-k8s.io/secret")})
	}
	for i := range machinesEach {
		owner, base := "MachineSet/"+pool, pool
		if i < controlPlanes {
			owner, base = "KubeadmControlPlane/"+plane, plane
		}
		name := fmt.Sprintf("%s-%d", base, i)
		list = append(list,
			specimenObject{"Machine", name, owner, true, map[string]any{"spec": template(true, "", name)}},
			specimenObject{"DevMachine", name, "Machine/" + name, true, map[string]any{"spec": devMachine()}},
			specimenObject{"KubeadmConfig", name, "Machine/" + name, false, map[string]any{"spec": kubeadmConfig()}},
			specimenObject{"Secret", name, "KubeadmConfig/" + name, false, secret("cluster.x-k8s.io/secret")},
		)
	}
	return list
}

func reference(group, kind, name string) map[string]any {
	return map[string]any{"apiGroup": group, "kind": kind, "name": name}
}

func devMachine() map[string]any {
	return map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}}
}

func kubeadmConfig() map[string]any {
	arguments := []any{map[string]any{"name": "eviction-hard", "value": "nodefs.available<0%,nodefs.inodesFree<0%"}}
	node := map[string]any{"nodeRegistration": map[string]any{"criSocket": "unix:///run/containerd/containerd.sock", "kubeletExtraArgs": arguments}}
	return map[string]any{"initConfiguration": node, "joinConfiguration": node}
}

// secret returns the content of a Secret with 2 KB of data, the least that a kubeconfig or a bootstrap configuration
// has.
func secret(typ string) map[string]any {
	return map[string]any{"type": typ, "stringData": map[string]any{"value": strings.Repeat("0123456789abcdef", 128)}}
}

// fill creates clusters in a namespace.
func fill(ctx context.Context, c dynamic.Interface, namespace string, clusters int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range clusters {
		group.Go(func() error { return fillOne(ctx, c, namespace, fmt.Sprintf("cluster-%04d", i)) })
	}
	return group.Wait()
}

func fillOne(ctx context.Context, c dynamic.Interface, namespace, cluster string) error {
	uids := make(map[string]types.UID)
	for _, o := range generate(cluster) {
		k := kindNamed(o.kind)
		u := &unstructured.Unstructured{Object: maps.Clone(o.content)}
		u.SetGroupVersionKind(k.resource().GroupVersion().WithKind(k.name))
		u.SetNamespace(namespace)
		u.SetName(o.name)
		u.SetLabels(map[string]string{clusterLabel: cluster})
		if o.finalizer {
			u.SetFinalizers([]string{strings.ToLower(k.name) + "." + coreGroup})
		}
		if ownerKind, name, owned := strings.Cut(o.owner, "/"); owned {
			owner := kindNamed(ownerKind)
			controls := true
			u.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: owner.resource().GroupVersion().String(), Kind: owner.name, Name: name, UID: uids[o.owner], Controller: &controls,
			}})
		}
		created, err := c.Resource(k.resource()).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", o.kind, o.name, err)
		}
		uids[o.kind+"/"+o.name] = created.GetUID()
	}
	return nil
}
