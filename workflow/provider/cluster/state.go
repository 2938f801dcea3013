package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/workflow/task"
)

// state is one look at a cluster.
type state struct {
	cluster      *clusterv1.Cluster
	controlPlane *controlplanev1.KubeadmControlPlane // nil if it is of another kind
	machines     []clusterv1.Machine
}

// look reads a cluster, its control plane and its machines. A nil cluster is none.
func look(ctx context.Context, on *task.Cluster, namespace, name string) (*state, error) {
	s := &state{cluster: &clusterv1.Cluster{}}
	found, err := get(ctx, on, clusterv1.GroupVersion.WithKind("Cluster"), namespace, name, s.cluster)
	if err != nil || !found {
		return &state{}, err
	}
	if ref := s.cluster.Spec.ControlPlaneRef; ref.Kind == "KubeadmControlPlane" && ref.APIGroup == controlplanev1.GroupVersion.Group {
		cp := &controlplanev1.KubeadmControlPlane{}
		found, err := get(ctx, on, controlplanev1.GroupVersion.WithKind(ref.Kind), namespace, ref.Name, cp)
		if err != nil {
			return nil, err
		}
		if found {
			s.controlPlane = cp
		}
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	err = on.Kube.Do(ctx, "list the Machines of "+namespace+"/"+name, func(ctx context.Context) error {
		return on.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: name})
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		var m clusterv1.Machine
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &m); err != nil {
			return nil, fmt.Errorf("reading Machine %s: %w", list.Items[i].GetName(), err)
		}
		s.machines = append(s.machines, m)
	}
	slices.SortFunc(s.machines, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

// get reads an object into its type; false if it is not there.
func get(ctx context.Context, on *task.Cluster, kind schema.GroupVersionKind, namespace, name string, into any) (bool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	err := on.Kube.Do(ctx, "get "+kind.Kind+" "+namespace+"/"+name, func(ctx context.Context) error {
		return on.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return false, fmt.Errorf("reading %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	return true, nil
}

// uninitialized says why the control plane takes no requests yet; nothing if it does.
func (s *state) uninitialized() []string {
	if s.cluster == nil {
		return []string{"there is no such Cluster"}
	}
	if done := s.cluster.Status.Initialization.ControlPlaneInitialized; done != nil && *done {
		return nil
	}
	return append([]string{"its control plane is not initialized"}, untrue("Cluster", s.cluster, clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition)...)
}

// unavailable says why not all of the cluster is there and well; nothing if it is.
func (s *state) unavailable() []string {
	if s.cluster == nil {
		return []string{"there is no such Cluster"}
	}
	var why []string
	if s.cluster.Status.ObservedGeneration < s.cluster.Generation {
		why = append(why, "its controller has not seen its latest change")
	}
	why = append(why, untrue("Cluster", s.cluster, clusterv1.ClusterAvailableCondition)...)
	if r := s.cluster.Status.ControlPlane; r == nil {
		why = append(why, "no control plane yet")
	} else {
		why = append(why, counts("control plane", r.DesiredReplicas, r.Replicas, r.AvailableReplicas, r.UpToDateReplicas)...)
	}
	if r := s.cluster.Status.Workers; r != nil {
		why = append(why, counts("workers", r.DesiredReplicas, r.Replicas, r.AvailableReplicas, r.UpToDateReplicas)...)
	}
	return why
}

// outdated says why the cluster is not as a whole, and safely, at a version; nothing if it is. All machines have the
// version and none is on its way out, the control plane's controller has seen the change and says that etcd and the control
// plane's components are healthy: only then has etcd its full number of members, and may anything else be touched.
func (s *state) outdated(version string) []string {
	if s.cluster == nil {
		return []string{"there is no such Cluster"}
	}
	why := s.unavailable()
	for i := range s.machines {
		m := &s.machines[i]
		switch {
		case !m.DeletionTimestamp.IsZero():
			why = append(why, "Machine "+m.Name+" is being deleted")
		case m.Spec.Version != version:
			why = append(why, fmt.Sprintf("Machine %s has version %s", m.Name, m.Spec.Version))
		case m.Status.Phase != string(clusterv1.MachinePhaseRunning):
			why = append(why, fmt.Sprintf("Machine %s: phase %s", m.Name, m.Status.Phase))
		}
	}
	if cp := s.controlPlane; cp != nil {
		switch {
		case cp.Status.ObservedGeneration < cp.Generation:
			why = append(why, "the control plane's controller has not seen its latest change")
		case cp.Spec.Version != version:
			why = append(why, "the control plane is to have version "+cp.Spec.Version)
		}
		why = append(why, untrue("KubeadmControlPlane", cp, controlplanev1.KubeadmControlPlaneAvailableCondition,
			controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition)...)
		// An external etcd has no such condition: it is not Cluster API's.
		if cp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints == nil {
			why = append(why, untrue("KubeadmControlPlane", cp, controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition)...)
		}
	}
	return why
}

// conditioned is an object of Cluster API.
type conditioned interface{ GetConditions() []metav1.Condition }

// untrue are the conditions that are not True, with their reasons.
func untrue(what string, o conditioned, types ...string) []string {
	var why []string
	for _, t := range types {
		c := meta.FindStatusCondition(o.GetConditions(), t)
		switch {
		case c == nil:
			why = append(why, what+" has no condition "+t+" yet")
		case c.Status != metav1.ConditionTrue:
			why = append(why, fmt.Sprintf("%s: %s=%s %s: %s", what, t, c.Status, c.Reason, strings.Join(strings.Fields(c.Message), " ")))
		}
	}
	return why
}

func counts(what string, desired, have, available, upToDate *int32) []string {
	n := func(v *int32) int32 {
		if v == nil {
			return -1
		}
		return *v
	}
	if want := n(desired); want >= 0 && want == n(have) && want == n(available) && want == n(upToDate) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d machines wanted, %d there, %d available, %d up to date (-1: not told yet)", what, n(desired), n(have), n(available), n(upToDate))}
}
