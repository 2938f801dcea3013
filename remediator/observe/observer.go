package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/kube/tenant"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// callTimeout bounds one request to the management cluster.
const callTimeout = 10 * time.Second

// Observer reads the facts of owners of machines. Its methods may be called concurrently once its cache runs and is synced.
type Observer struct {
	cache   cache.Cache
	live    client.Client // does not cache
	tenants *tenant.Dialer
	tested  testedProviders
	census  census
	nodes   *utilcache.Expiring // the Nodes last read for each owner: nodesOf by UID
	now     func() time.Time

	// Limits reads the RepairLimits; nil if there are none. It is set before use.
	Limits client.Reader
}

// New returns an Observer with a cache that the caller starts: Cache().Start. The API server must
// serve Machine in v1beta2. Workload clusters are reached at private addresses and at the addresses
// that the guard allows. held returns why nothing may be changed in workload clusters at the
// moment. If held is nil, changes are always allowed.
func New(ctx context.Context, config *rest.Config, g *guard.Guard, held func() error) (*Observer, error) {
	c, live, err := connect(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("setting up the observer of machines: %w", err)
	}
	tenants := tenant.New(g.AllowPrivate())
	tenants.CheckWritesAllowed = held
	return &Observer{cache: c, live: live, tenants: tenants, nodes: utilcache.NewExpiring(), now: time.Now}, nil
}

// Cache returns the cache that Observe reads. Controllers watch it too, so they add no other watch.
// It stores only the parts of objects that facts need (see strip.go), so never write an object that
// was read from it.
func (o *Observer) Cache() cache.Cache { return o.cache }

// Client returns the client that does not cache. Writes use it too, so they add no other connection.
func (o *Observer) Client() client.Client { return o.live }

// Observe returns an owner's facts. For an owner that is gone it returns facts whose Owner.Found is
// false, and no error. made are the objects of escalation steps recorded in the log.
func (o *Observer) Observe(ctx context.Context, owner remediator.Owner, made remediator.CreatedObjects) (*remediator.Facts, error) {
	kind, _ := ownerkind.Named(owner.Kind)
	l := &observation{observer: o, kind: kind, created: made, facts: &remediator.Facts{Owner: remediator.OwnerFacts{Owner: owner}}}
	for _, step := range []func(context.Context) error{l.machines, l.cluster, l.owner, l.policy, l.notices, l.healthChecks, l.fleet, l.requests, l.nodes, l.details, l.stepObjects} {
		if err := step(ctx); err != nil {
			return nil, err // each step wraps its error; the caller adds the owner
		}
	}
	return l.facts, nil
}

// observation is one observation of one owner: the objects that its steps read, and the facts that
// the steps fill.
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
	l.fillMachines()
	return nil
}

// fillMachines sets the facts in the Machine objects.
func (l *observation) fillMachines() {
	slices.SortFunc(l.found, func(a, b *clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for _, m := range l.found {
		l.facts.Machines = append(l.facts.Machines, machine(m))
	}
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
	f.Paused = ptr.Deref(cluster.Spec.Paused, false) || paused(cluster)
	f.Entries = entries(cluster)
	f.Initialized = meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
	for i := range l.facts.Machines {
		setStartup(&l.facts.Machines[i], cluster, remediator.OwnerKind(l.facts.Owner.Kind).IsControlPlane())
	}
	for _, domain := range cluster.Status.FailureDomains {
		if ptr.Deref(domain.ControlPlane, false) {
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

func paused(o metav1.Object) bool {
	_, found := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return found
}

// FromObjects returns the facts in objects that were already read, for a tool that shows the next steps and cannot send the requests of a daemon. o is nil
// if the owner was not read; the machines are the owner's. Etcd contains only the learners recorded in the log.
func FromObjects(cluster *clusterv1.Cluster, o ownerkind.Owner, machines []*clusterv1.Machine, sets []clusterv1.MachineSet, policy remediator.Policy, learners []string) *remediator.Facts {
	l := &observation{facts: &remediator.Facts{Policy: policy}, found: slices.Clone(machines), sets: sets}
	f := l.facts
	l.fillCluster(cluster)
	f.Cluster.Reachable, f.Cluster.BlindFor = object.True, time.Hour // no grace period: what was not read stays unread
	l.fillMachines()
	f.Etcd = &remediator.Etcd{}
	for _, node := range learners {
		f.Etcd.Members = append(f.Etcd.Members, remediator.Member{Node: node, Learner: true, Answers: object.Unknown})
	}
	if o == nil {
		return f
	}
	f.Owner.Owner = o.Owner()
	f.Owner.Owner.Cluster = cluster.Name
	l.kind, _ = ownerkind.Named(string(o.OwnerKind()))
	l.fillOwner(o)
	return f
}
