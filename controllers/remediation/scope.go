package remediation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
)

// scope is what one policy is responsible for, as the caches have it.
type scope struct {
	clusters []string
	// machines watched, and the control planes among their owners.
	machines int
	planes   []plane
	// workers watched, by their clusters.
	workers map[string][]*clusterv1.Machine
	// elsewhere are clusters that an earlier policy has.
	elsewhere []string
}

// plane is a control plane of the scope.
type plane struct {
	cluster  *clusterv1.Cluster
	kcp      *controlplanev1.KubeadmControlPlane
	machines []clusterv1.Machine
}

// resting says that nothing of a control plane may be changed: it is paused, or being deleted. A move deletes what
// belongs to a paused cluster, and must not find it again.
func (p *plane) resting() bool {
	return !p.kcp.DeletionTimestamp.IsZero() || !p.cluster.DeletionTimestamp.IsZero() || annotations.IsPaused(p.cluster, p.kcp)
}

// size is how many machines the control plane has of those that it should have: while it surges by its replicas it asks
// for more than it is to keep, and while it grows its new machines cannot fail yet.
func (p *plane) size() int32 {
	replicas := int32(1)
	if p.kcp.Spec.Replicas != nil {
		replicas = *p.kcp.Spec.Replicas
	}
	return min(replicas, int32(len(p.machines))) //nolint:gosec // of one control plane
}

// kinds of owners that a policy selects separately.
const (
	ofPlanes  = string(remediator.ControlPlane)
	ofWorkers = string(remediator.Deployment)
)

// look finds what a policy is responsible for. It asks the caches alone.
func look(ctx context.Context, cache client.Reader, p *v1alpha1.RepairPolicy) (*scope, error) {
	var policies v1alpha1.RepairPolicyList
	var clusters clusterv1.ClusterList
	var kcps controlplanev1.KubeadmControlPlaneList
	var machines clusterv1.MachineList
	for _, list := range []client.ObjectList{&policies, &clusters, &kcps, &machines} {
		if err := cache.List(ctx, list, client.InNamespace(p.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("reading the caches: %w", err)
		}
	}
	planesOf := make(map[string][]*controlplanev1.KubeadmControlPlane)
	for i := range kcps.Items {
		name := kcps.Items[i].Labels[clusterv1.ClusterNameLabel]
		planesOf[name] = append(planesOf[name], &kcps.Items[i])
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
		planes, workers := observe.Select(policies.Items, c.Labels, ofPlanes), observe.Select(policies.Items, c.Labels, ofWorkers)
		switch {
		case is(p, planes), is(p, workers):
			s.clusters = append(s.clusters, c.Name)
		case observe.Selects(p, c.Labels, ofPlanes) == object.True || observe.Selects(p, c.Labels, ofWorkers) == object.True:
			s.elsewhere = append(s.elsewhere, c.Name)
		}
		if is(p, planes) {
			s.machines += len(membersOf[c.Name])
			for _, kcp := range planesOf[c.Name] {
				s.planes = append(s.planes, plane{cluster: c, kcp: kcp, machines: membersOf[c.Name]})
			}
		}
		if is(p, workers) {
			s.machines += len(workersOf[c.Name])
			s.workers[c.Name] = workersOf[c.Name]
		}
	}
	return s, nil
}

func is(p, other *v1alpha1.RepairPolicy) bool { return other != nil && other.Name == p.Name }
