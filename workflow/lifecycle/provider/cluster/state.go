package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/kube/settled"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// look reads a cluster and what belongs to it.
func look(ctx context.Context, on *access.Cluster, namespace, name string) (s settled.State, err error) {
	err = on.Kube.Do(ctx, "look at Cluster "+namespace+"/"+name, func(ctx context.Context) (err error) {
		s, err = settled.Look(ctx, on.Client, clusterv1.GroupVersion.WithKind("Cluster").GroupKind(), client.ObjectKey{Namespace: namespace, Name: name})
		return err
	})
	return s, err
}

// lookThrough reads a cluster, and what belongs to it, through its manager.
func lookThrough(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) (settled.State, error) {
	on, err := c.Open(manager)
	if err != nil {
		return settled.State{}, err
	}
	return look(c, on, spec.Namespace, spec.Name)
}

// uninitialized says why the control plane takes no requests yet; nothing if it does.
func uninitialized(s settled.State) []string {
	if s.Object == nil {
		return []string{"there is no such Cluster"}
	}
	if done, _, _ := unstructured.NestedBool(s.Object.Object, "status", "initialization", "controlPlaneInitialized"); done {
		return nil
	}
	return append([]string{"its control plane is not initialized"},
		object.Untrue(s.Object, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition)...)
}

// machines are those of the cluster.
func machines(s settled.State) (list []*unstructured.Unstructured) {
	for _, u := range s.Members {
		if u.GetKind() == "Machine" {
			list = append(list, u)
		}
	}
	return list
}

// outdated says why a cluster is not as a whole, and safely, at a version; nothing if it is. It is settled, all its machines
// have the version, and the control plane's controller says that etcd and the control plane's components are healthy: only
// then has etcd its full number of members, and may anything else be touched.
func outdated(s settled.State, version string) []string {
	why := s.Missing()
	for _, m := range machines(s) {
		if have, _, _ := unstructured.NestedString(m.Object, "spec", "version"); have != version {
			why = append(why, fmt.Sprintf("Machine %s has version %s", m.GetName(), have))
		}
	}
	cp := s.ControlPlane
	if cp == nil || cp.GroupVersionKind().GroupKind() != controlplanev1.GroupVersion.WithKind("KubeadmControlPlane").GroupKind() {
		return why
	}
	if have, _, _ := unstructured.NestedString(cp.Object, "spec", "version"); have != version {
		why = append(why, "the control plane is to have version "+have)
	}
	healthy := []string{controlplanev1.KubeadmControlPlaneAvailableCondition, controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition}
	// An external etcd has no such condition: it is not Cluster API's.
	if _, external, _ := unstructured.NestedMap(cp.Object, "spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external"); !external {
		healthy = append(healthy, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	}
	return append(why, object.Untrue(cp, healthy...)...)
}

// newest is the newest of the versions that the specs of a cluster want and the one that is given. One that cannot be compared is none.
func newest(s settled.State, than string) string {
	specs := map[*unstructured.Unstructured][]string{s.Object: {"spec", "topology", "version"}, s.ControlPlane: {"spec", "version"}}
	for _, u := range workers(s) {
		specs[u] = []string{"spec", "template", "spec", "version"}
	}
	for u, path := range specs {
		if u == nil {
			continue
		}
		text, _, _ := unstructured.NestedString(u.Object, path...)
		have, err := utilversion.ParseSemantic(text)
		if err != nil {
			continue
		}
		if known, err := utilversion.ParseSemantic(than); err == nil && known.LessThan(have) {
			than = text
		}
	}
	return than
}

// workers are the MachineDeployments and MachinePools of the cluster.
func workers(s settled.State) (list []*unstructured.Unstructured) {
	for _, u := range s.Members {
		if u.GetKind() == "MachineDeployment" || u.GetKind() == "MachinePool" {
			list = append(list, u)
		}
	}
	return list
}

// sized is a specification with the numbers of machines that a running cluster wants, where it has none: an upgrade does not scale.
// Without a number it stays where the worker objects want different ones.
func sized(s settled.State, spec provider.Cluster) provider.Cluster {
	wanted := func(u *unstructured.Unstructured) *int {
		if u == nil {
			return nil
		}
		n, found, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if !found || err != nil {
			return nil
		}
		return new(int(n))
	}
	if spec.ControlPlaneReplicas == nil {
		spec.ControlPlaneReplicas = wanted(s.ControlPlane)
	}
	if spec.WorkerReplicas != nil {
		return spec
	}
	for i, u := range workers(s) {
		n := wanted(u)
		if n == nil || i > 0 && *n != *spec.WorkerReplicas {
			spec.WorkerReplicas = nil
			return spec
		}
		spec.WorkerReplicas = n
	}
	return spec
}
