package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// Observe returns an owner's facts. If the owner is gone, Owner.Found is false and the error is
// nil. made contains the objects of escalation steps that the log records.
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

// observation is one observation of one owner. Its steps share the objects they have read.
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

// machines lists the machines that the owner controls. A MachineDeployment controls them through its MachineSets.
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

// entries returns the replicas in the topology of a Cluster by entry. The control plane's entry is "".
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
		// The kind is not watched: such an owner exists while it has machines, and scute requests
		// nothing from it.
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

// read reads the owner into o. It returns false if the owner is gone or a later object has its
// name.
func (l *observation) read(ctx context.Context, o client.Object) (bool, error) {
	get := func() error {
		return l.observer.cache.Get(ctx, l.key(l.facts.Owner.Name), o, client.UnsafeDisableDeepCopy)
	}
	err := get()
	if uncached(err) { // its provider was installed after the cache started
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

func (l *observation) managed(o client.Object) bool {
	_, owned := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return owned && l.clusterObject != nil && l.clusterObject.Spec.Topology.IsDefined()
}

// topology sets the facts about the owner's topology entry, if that entry sets the owner's replicas.
func (l *observation) topology(entry string) {
	c := &l.facts.Cluster
	if wanted, ok := c.Entries[entry]; ok {
		c.Topology, c.TopologyReplicas, c.Entry = true, wanted, entry
	}
	version, step := l.facts.Owner.Version, l.clusterObject.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
	c.UpgradePending = version != l.clusterObject.Spec.Topology.Version && version != step
}

func (l *observation) policy(ctx context.Context) error {
	if l.clusterObject == nil {
		return nil
	}
	list := &v1alpha1.RepairPolicyList{}
	if err := l.observer.cache.List(ctx, list, l.inNamespace(), client.UnsafeDisableDeepCopy); err != nil {
		if absent(err) {
			return nil
		}
		return fmt.Errorf("listing repair policies: %w", err)
	}
	p := Select(list.Items, l.clusterObject.Labels, l.facts.Owner.Kind)
	if p == nil {
		return nil
	}
	l.facts.Policy = Policy(p)
	if !remediator.OwnerKind(l.facts.Owner.Kind).HasNodes() {
		l.facts.Policy.Checks.NodeStartup = 0
	}
	l.escalation = p.Spec.Escalation
	return nil
}

func paused(o metav1.Object) bool {
	_, found := o.GetAnnotations()[clusterv1.PausedAnnotation]
	return found
}

// FromObjects returns the facts in objects that were already read, for a tool that sends no
// requests. o is nil if the owner was not read. machines and sets are the Machines and MachineSets
// of the owner. Etcd of the result contains only learners: a member for each node in learners,
// which the log records.
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

// Facts returns the facts about a Machine that the Machine and its Cluster contain. They do not
// include facts about its infrastructure machine and its request.
func Facts(m *clusterv1.Machine, cluster *clusterv1.Cluster, controlPlane bool) remediator.Machine {
	f := machine(m)
	setStartup(&f, cluster, controlPlane)
	return f
}

func machine(m *clusterv1.Machine) remediator.Machine {
	f := remediator.Machine{
		Name: m.Name, UID: m.UID, Created: m.CreationTimestamp.Time,
		Node: nodeOf(m), FailureDomain: domainOf(m),
		Conditions:          make(map[string]remediator.Condition, len(m.Status.Conditions)),
		Hooks:               hooks(m.Annotations),
		Paused:              paused(m),
		UnhealthyAnnotation: m.Annotations[v1alpha1.UnhealthyAnnotation],
		Needed:              m.Annotations[object.NeededAnnotation],
		Certificates:        m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation],
		RemediationFor:      m.Annotations[controlplanev1.RemediationForAnnotation],
	}
	if expiry := m.Status.CertificatesExpiryDate; !expiry.IsZero() {
		f.CertificatesStatus = expiry.UTC().Format(time.RFC3339)
	}
	if by := metav1.GetControllerOfNoCopy(m); by != nil && by.Kind == string(remediator.Set) {
		f.Set = by.Name
	}
	if m.DeletionTimestamp != nil {
		f.Deleting, f.DeletingSince = true, m.DeletionTimestamp.Time
		f.Draining, f.Detaching = waitingSince(m)
	}
	_, f.SkipsDrain = m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	_, f.SkipsDetach = m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	_, f.Skip = m.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	_, f.Remediate = m.Annotations[clusterv1.RemediateMachineAnnotation]
	if value, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
		f.DeleteAnnotation = cmp.Or(value, noValue)
	}
	for _, c := range m.Status.Conditions {
		f.Conditions[c.Type] = remediator.Condition{Status: object.ConditionStatus(c.Status), Reason: c.Reason, Since: c.LastTransitionTime.Time}
	}
	return f
}

// setStartup sets Startup and Exempt of a machine by the same rules as a MachineHealthCheck
// (needsRemediation in its reconciler).
func setStartup(m *remediator.Machine, cluster *clusterv1.Cluster, controlPlane bool) {
	begins := func(isTrue bool, since time.Time) bool {
		if isTrue && since.After(m.Startup) {
			m.Startup = since
		}
		return isTrue
	}
	ofCluster := func(condition string) bool {
		c := meta.FindStatusCondition(cluster.Status.Conditions, condition)
		return c != nil && begins(c.Status == metav1.ConditionTrue, c.LastTransitionTime.Time)
	}
	initialized, ready := ofCluster(clusterv1.ClusterControlPlaneInitializedCondition), ofCluster(clusterv1.ClusterInfrastructureReadyCondition)
	m.Exempt = !ready || !initialized && !controlPlane
	own := m.Conditions[clusterv1.MachineInfrastructureReadyCondition]
	begins(own.Status == object.True, own.Since)
}

// waitingSince returns the time since which the deletion of a machine has waited for the drain of
// its Node, or for the detachment of its volumes; zero if it does not wait for that. It reads the
// condition Deleting to find the current wait, because the start times remain in the status after a
// wait has ended.
func waitingSince(m *clusterv1.Machine) (drain, detach time.Time) {
	deleting := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineDeletingCondition)
	switch {
	case deleting == nil || m.Status.Deletion == nil:
	case deleting.Reason == clusterv1.MachineDeletingDrainingNodeReason:
		drain = m.Status.Deletion.NodeDrainStartTime.Time
	case deleting.Reason == clusterv1.MachineDeletingWaitingForVolumeDetachReason:
		detach = m.Status.Deletion.WaitForNodeVolumeDetachStartTime.Time
	}
	return drain, detach
}

// nodeOf returns the name of a machine's Node. The workload cluster sets it, so it is made printable.
func nodeOf(m *clusterv1.Machine) string { return object.Printable(m.Status.NodeRef.Name) }

func domainOf(m *clusterv1.Machine) string {
	return cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain)
}

// noValue represents a delete annotation without a value, as kubectl annotate sets it. An empty
// string means that the annotation is absent.
const noValue = "(no value)"

// hooks returns the deletion hooks in annotations, in the format of hookName, except the control
// plane's own.
func hooks(annotations map[string]string) []string {
	var names []string
	for key := range annotations {
		if name, ok := hookName(key); ok && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// hookName returns a short name of a deletion hook with the phase, for example
// "pre-drain/etcd-backup". It returns false for any other annotation.
func hookName(key string) (string, bool) {
	for prefix, phase := range map[string]string{
		clusterv1.PreDrainDeleteHookAnnotationPrefix: "pre-drain", clusterv1.PreTerminateDeleteHookAnnotationPrefix: "pre-terminate",
	} {
		if name, found := strings.CutPrefix(key, prefix); found {
			return phase + "/" + strings.TrimPrefix(name, "/"), true
		}
	}
	return "", false
}

// suspect reports whether a machine may be unhealthy or part of a remediation, so that facts must
// be read for it that need a request each.
func suspect(f *remediator.Machine) bool {
	if f.Request != nil || f.UnhealthyAnnotation != "" || f.DeleteAnnotation != "" || f.Remediate {
		return true
	}
	is := func(condition string, status object.ConditionStatus) bool {
		return f.Conditions[condition].Status == status
	}
	return is(clusterv1.MachineHealthCheckSucceededCondition, object.False) || !is(clusterv1.MachineReadyCondition, object.True) ||
		is(clusterv1.MachineUpToDateCondition, object.False)
}
