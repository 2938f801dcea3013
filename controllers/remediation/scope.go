package remediation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
)

// scope contains the objects to which one policy applies, according to the caches.
type scope struct {
	clusters []string
	machines int
	planes   []plane
	workers  map[string][]*clusterv1.Machine
	// elsewhere contains the clusters that the policy selects, but to which an earlier policy
	// applies.
	elsewhere []string
}

type plane struct {
	cluster  *clusterv1.Cluster
	owner    ownerkind.Owner
	machines []clusterv1.Machine
}

// isPausedOrDeleting reports whether a control plane must not be changed. A move deletes the
// objects of a paused cluster, and they must not be created again.
func (p *plane) isPausedOrDeleting() bool {
	return !p.owner.GetDeletionTimestamp().IsZero() || !p.cluster.DeletionTimestamp.IsZero() || annotations.IsPaused(p.cluster, p.owner)
}

// size returns the number of machines of a control plane or its replicas, whichever is lower.
// During a surge there are more machines than the control plane will keep. While it scales up, the
// machines that do not exist yet cannot fail.
func (p *plane) size() int32 {
	return min(ptr.Deref(p.owner.Replicas(), 1), int32(len(p.machines))) //nolint:gosec // the machines of one control plane
}

const (
	planeKind  = string(remediator.ControlPlane)
	workerKind = string(remediator.Deployment)
)

func readScope(ctx context.Context, cached client.Reader, p *v1alpha1.RepairPolicy) (*scope, error) {
	var policies v1alpha1.RepairPolicyList
	var clusters clusterv1.ClusterList
	var machines clusterv1.MachineList
	for _, list := range []client.ObjectList{&policies, &clusters, &machines} {
		if err := cached.List(ctx, list, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("reading the caches: %w", err)
		}
	}
	planesOf, err := controlPlanes(ctx, cached, p.Namespace)
	if err != nil {
		return nil, err
	}
	membersOf, workersOf := make(map[string][]clusterv1.Machine), make(map[string][]*clusterv1.Machine)
	for i := range machines.Items {
		m := machines.Items[i]
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			membersOf[m.Spec.ClusterName] = append(membersOf[m.Spec.ClusterName], m)
		} else {
			workersOf[m.Spec.ClusterName] = append(workersOf[m.Spec.ClusterName], &machines.Items[i])
		}
	}
	s := &scope{workers: make(map[string][]*clusterv1.Machine)}
	slices.SortFunc(clusters.Items, func(a, b clusterv1.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for i := range clusters.Items {
		c := &clusters.Items[i]
		planes, workers := observe.Select(policies.Items, c.Labels, planeKind), observe.Select(policies.Items, c.Labels, workerKind)
		switch {
		case samePolicy(p, planes), samePolicy(p, workers):
			s.clusters = append(s.clusters, c.Name)
		case observe.Selects(p, c.Labels, planeKind) == object.True || observe.Selects(p, c.Labels, workerKind) == object.True:
			s.elsewhere = append(s.elsewhere, c.Name)
		}
		if samePolicy(p, planes) {
			s.machines += len(membersOf[c.Name])
			for _, owner := range planesOf[c.Name] {
				s.planes = append(s.planes, plane{cluster: c, owner: owner, machines: membersOf[c.Name]})
			}
		}
		if samePolicy(p, workers) {
			s.machines += len(workersOf[c.Name])
			s.workers[c.Name] = workersOf[c.Name]
		}
	}
	return s, nil
}

func controlPlanes(ctx context.Context, cached client.Reader, namespace string) (map[string][]ownerkind.Owner, error) {
	planes := make(map[string][]ownerkind.Owner)
	for _, kind := range ownerkind.All() {
		if !kind.Name.IsControlPlane() {
			continue
		}
		list := kind.NewList()
		err := cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
		if unserved := new(cache.ErrResourceNotCached); errors.As(err, &unserved) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the caches: %w", err)
		}
		for _, o := range ownerkind.Items(list) {
			name := o.GetLabels()[clusterv1.ClusterNameLabel]
			planes[name] = append(planes[name], o)
		}
	}
	return planes, nil
}

func samePolicy(p, other *v1alpha1.RepairPolicy) bool { return other != nil && other.Name == p.Name }
