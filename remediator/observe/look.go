package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// observation is one observation of one owner: what its steps read, and the facts that they fill.
type observation struct {
	observer *Observer
	facts    *remediator.Facts
	kind     ownerkind.Kind // the zero Kind for an owner that scute does not know

	found         []*clusterv1.Machine // in the order of facts.Machines
	clusterObject *clusterv1.Cluster   // nil if it is gone
	escalation    []v1alpha1.EscalationStep
	created       remediator.CreatedObjects // by escalation steps, from the log
	sets          []clusterv1.MachineSet    // of an owner whose machines belong to MachineSets
}

func (l *observation) inNamespace() client.InNamespace {
	return client.InNamespace(l.facts.Owner.Namespace)
}

func (l *observation) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: l.facts.Owner.Namespace, Name: name}
}

// machines lists the machines that the owner controls; a MachineDeployment controls them through its MachineSets.
func (l *observation) machines(ctx context.Context) error {
	controllers := []string{string(l.facts.Owner.UID)}
	if l.kind.ThroughSets {
		sets := &clusterv1.MachineSetList{}
		if err := l.observer.cache.List(ctx, sets, l.inNamespace(), client.MatchingFields{byController: controllers[0]}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing its MachineSets: %w", err)
		}
		l.sets = sets.Items
		for i := range sets.Items {
			controllers = append(controllers, string(sets.Items[i].UID))
		}
	}
	for _, uid := range controllers {
		list := &clusterv1.MachineList{}
		if err := l.observer.cache.List(ctx, list, l.inNamespace(), client.MatchingFields{byController: uid}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing its machines: %w", err)
		}
		for i := range list.Items {
			l.found = append(l.found, &list.Items[i])
		}
	}
	slices.SortFunc(l.found, func(a, b *clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range l.found {
		l.facts.Machines = append(l.facts.Machines, machine(m))
	}
	return nil
}

func (l *observation) cluster(ctx context.Context) error {
	cluster := &clusterv1.Cluster{}
	err := l.observer.cache.Get(ctx, l.key(l.facts.Owner.Cluster), cluster, client.UnsafeDisableDeepCopy)
	if absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading its cluster: %w", err)
	}
	l.fillCluster(cluster)
	return nil
}

func (l *observation) fillCluster(cluster *clusterv1.Cluster) {
	l.clusterObject = cluster
	f := &l.facts.Cluster
	f.Found, f.UID = true, cluster.UID
	f.Deleting = !cluster.DeletionTimestamp.IsZero()
	f.Paused = derefBool(cluster.Spec.Paused) || paused(cluster)
	f.Entries = entries(cluster)
	f.Initialized = meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
	for i := range l.facts.Machines {
		setStartup(&l.facts.Machines[i], cluster, remediator.OwnerKind(l.facts.Owner.Kind).IsControlPlane())
	}
	for _, domain := range cluster.Status.FailureDomains {
		if derefBool(domain.ControlPlane) {
			f.FailureDomains = append(f.FailureDomains, domain.Name)
		}
	}
}

// entries returns the replicas in the topology of a Cluster by entry; the entry of the control plane is "".
func entries(cluster *clusterv1.Cluster) map[string]int32 {
	if !cluster.Spec.Topology.IsDefined() {
		return nil
	}
	said := make(map[string]int32)
	if n := cluster.Spec.Topology.ControlPlane.Replicas; n != nil {
		said[""] = *n
	}
	for _, t := range cluster.Spec.Topology.Workers.MachineDeployments {
		if t.Replicas != nil {
			said[t.Name] = *t.Replicas
		}
	}
	return said
}

func (l *observation) owner(ctx context.Context) error {
	if l.kind.Name == "" {
		// Its kind is not watched: it exists while it has machines, and nothing is requested from it.
		l.facts.Owner.Found = len(l.found) > 0
		return nil
	}
	read := l.kind.New()
	if ok, err := l.read(ctx, read); !ok || err != nil {
		return err
	}
	o, ok := ownerkind.As(read)
	if !ok {
		return fmt.Errorf("a %T owns no machines", read)
	}
	l.fillOwner(o)
	l.facts.Owner.Tested = l.observer.Tested(ctx, l.kind)
	return nil
}

// fillOwner sets the facts in the owner's object and in its entry of the cluster's topology.
func (l *observation) fillOwner(o ownerkind.Owner) {
	f := &l.facts.Owner
	f.Found = true
	f.Deleting = o.GetDeletionTimestamp() != nil
	f.Paused = paused(o)
	f.Relaxed = o.GetAnnotations()[controlplanev1.RemediationInProgressAnnotation]
	f.Touched = o.GetAnnotations()[object.TouchAnnotation]
	f.MaxSurge = 1
	f.Replicas, f.Observed = ptr.Deref(o.Replicas(), 1), o.ObservedGeneration() >= o.GetGeneration()
	o.Fill(f, ownerkind.Children{Machines: l.found, Sets: l.sets})
	if entry := o.TopologyEntry(); l.managed(o) && l.kind.TopologyReplicas(l.clusterObject, entry) != nil {
		l.topology(entry)
	}
}

// read gets the owner. It returns false if the owner is gone, or another object has its name.
func (l *observation) read(ctx context.Context, o client.Object) (bool, error) {
	get := func() error {
		return l.observer.cache.Get(ctx, l.key(l.facts.Owner.Name), o, client.UnsafeDisableDeepCopy)
	}
	err := get()
	if uncached(err) { // its provider was installed after the cache started; it has machines, so it is served now
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if _, err := l.observer.cache.GetInformer(ctx, o); err != nil {
			return false, fmt.Errorf("watching its kind: %w", err)
		}
		err = get()
	}
	if absent(err) || err == nil && o.GetUID() != l.facts.Owner.UID {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading it: %w", err)
	}
	return true, nil
}

// managed reports whether the Cluster's topology manages an owner of machines.
func (l *observation) managed(o client.Object) bool {
	_, owned := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return owned && l.clusterObject != nil && l.clusterObject.Spec.Topology.IsDefined()
}

// topology sets the facts of the owner's topology entry. If the entry has no replicas, they are set at the owner.
func (l *observation) topology(entry string) {
	c := &l.facts.Cluster
	if wanted, ok := c.Entries[entry]; ok {
		c.Topology, c.TopologyReplicas, c.Entry = true, wanted, entry
	}
	version, step := l.facts.Owner.Version, l.clusterObject.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
	c.UpgradePending = version != l.clusterObject.Spec.Topology.Version && version != step
}

func derefBool(b *bool) bool { return b != nil && *b }

func paused(o metav1.Object) bool {
	_, found := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return found
}
