package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/kube/settled"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Target is a cluster as seen on its manager, for one attempt of a step.
type Target struct {
	*Context
	Manager access.ClusterRef
	Cluster
}

func (c Cluster) fullName() string { return c.Namespace + "/" + c.Name }

func (t Target) open() (*access.Cluster, error) { return t.Open(t.Manager) }

func (t Target) read() (settled.State, error) {
	on, err := t.open()
	if err != nil {
		return settled.State{}, err
	}
	return t.readFrom(on)
}

func (t Target) readFrom(on *access.Cluster) (s settled.State, err error) {
	err = on.Kube.Do(t, "read Cluster "+t.fullName(), func(ctx context.Context) (err error) {
		s, err = settled.Read(ctx, on.Client, clusterv1.GroupVersion.WithKind("Cluster").GroupKind(), client.ObjectKey{Namespace: t.Namespace, Name: t.Name})
		return err
	})
	return s, err
}

func uninitializedReasons(s settled.State) []string {
	if s.Object == nil {
		return []string{"the Cluster does not exist"}
	}
	if done, _, _ := unstructured.NestedBool(s.Object.Object, "status", "initialization", "controlPlaneInitialized"); done {
		return nil
	}
	return append([]string{"its control plane is not initialized"},
		object.UntrueConditions(s.Object, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition)...)
}

func machines(s settled.State) []*unstructured.Unstructured { return members(s, "Machine") }

func workers(s settled.State) []*unstructured.Unstructured {
	return members(s, "MachineDeployment", "MachinePool")
}

func members(s settled.State, kinds ...string) (list []*unstructured.Unstructured) {
	for _, u := range s.Members {
		if slices.Contains(kinds, u.GetKind()) {
			list = append(list, u)
		}
	}
	return list
}

// outdatedReasons returns why the upgrade of a cluster is incomplete. It includes the health of
// etcd and of the control plane components: until they are healthy, an etcd member may be missing,
// and nothing else may be changed.
func outdatedReasons(s settled.State, version string) []string {
	why := s.Problems()
	for _, m := range machines(s) {
		if have := object.Text(m, "spec", "version"); have != version {
			why = append(why, fmt.Sprintf("Machine %s has version %s", m.GetName(), have))
		}
	}
	cp := s.ControlPlane
	if cp == nil || cp.GroupVersionKind().GroupKind() != controlplanev1.GroupVersion.WithKind("KubeadmControlPlane").GroupKind() {
		return why
	}
	if have := object.Text(cp, "spec", "version"); have != version {
		why = append(why, "the spec of the control plane has version "+have)
	}
	healthy := []string{controlplanev1.KubeadmControlPlaneAvailableCondition, controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition}
	// Cluster API sets no condition for an external etcd.
	if _, external, _ := unstructured.NestedMap(cp.Object, "spec", "kubeadmConfigSpec", "clusterConfiguration", "etcd", "external"); !external {
		healthy = append(healthy, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)
	}
	return append(why, object.UntrueConditions(cp, healthy...)...)
}

// newestVersion returns the newest version in a cluster's specs, or than if no version is newer. It
// ignores versions that cannot be parsed.
func newestVersion(s settled.State, than string) string {
	specs := map[*unstructured.Unstructured][]string{s.Object: {"spec", "topology", "version"}, s.ControlPlane: {"spec", "version"}}
	for _, u := range workers(s) {
		specs[u] = []string{"spec", "template", "spec", "version"}
	}
	for u, path := range specs {
		if u == nil {
			continue
		}
		text := object.Text(u, path...)
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

// withReplicas returns spec with missing replica counts set to those of the cluster, because an
// upgrade does not scale. WorkerReplicas stays nil if the worker objects have different counts.
func withReplicas(s settled.State, spec Cluster) Cluster {
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

// WaitAvailable waits until the cluster is settled: all its objects exist, are healthy and match their specs.
func (t Target) WaitAvailable() error {
	return t.wait("to be available", settled.State.Problems, checkPresent)
}

// wait polls until missing returns nothing, and fails when never returns an error. It retries
// failed reads, because API servers restart while a cluster is created.
func (t Target) wait(what string, missing func(settled.State) []string, never func(settled.State, Cluster) error) error {
	on, err := t.open()
	if err != nil {
		return err
	}
	return t.poll("cluster "+t.fullName()+" "+what, func() ([]string, error) {
		s, err := t.readFrom(on)
		if err != nil {
			return nil, err
		}
		return missing(s), never(s, t.Cluster)
	})
}

// checkPresent fails if the Cluster is gone or is being deleted.
func checkPresent(s settled.State, spec Cluster) error {
	switch {
	case s.Object == nil:
		return task.Final(errors.New("Cluster " + spec.fullName() + " no longer exists: it was deleted, or moved to another cluster"))
	case s.Object.GetDeletionTimestamp() != nil:
		return task.Final(errors.New("Cluster " + spec.fullName() + " is being deleted"))
	default:
		return nil
	}
}

// poll calls read until nothing is missing or until read returns a final error. If the context
// ends, the error names what is missing. Other runs may use this run's slot between two reads.
func (t Target) poll(what string, read func() (missing []string, err error)) error {
	last := "waiting for " + what
	return access.Poll(t, t.Call(), func(context.Context) (string, error) {
		why, err := read()
		switch {
		case err == nil && len(why) == 0 || task.IsFinal(err):
			return "", err
		case err != nil && t.Err() == nil:
			why = []string{redact.Message(err.Error())}
		}
		if len(why) > 0 {
			last = "waiting for " + what + ": " + strings.Join(why, "; ")
		}
		return last, nil
	})
}
