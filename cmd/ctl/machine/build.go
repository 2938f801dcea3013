package machine

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
)

// components returns the condition types of a Machine for the pods of the control plane.
func components() []string {
	return []string{
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
	}
}

// Join returns the clusters in the objects, sorted by namespace and name. If name is set, it returns only clusters with this name.
func (o *Objects) Join(name string) []*Cluster {
	var out []*Cluster
	for i := range o.Clusters {
		c := &o.Clusters[i]
		if name != "" && c.Name != name {
			continue
		}
		out = append(out, o.cluster(c))
	}
	slices.SortFunc(out, func(a, b *Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (o *Objects) cluster(c *clusterv1.Cluster) *Cluster {
	out := &Cluster{
		Namespace: c.Namespace, Name: c.Name, Deleting: c.DeletionTimestamp != nil, Paused: c.Spec.Paused != nil && *c.Spec.Paused,
	}
	owners := make(map[string]*Owner)
	if ref := c.Spec.ControlPlaneRef; ref.Name != "" { // because it is shown even before it has a machine
		plane := o.owner(c, ref.Kind, ref.Name, true)
		owners[ref.Kind+"/"+ref.Name] = plane
		out.Owners = append(out.Owners, plane)
	}
	for i := range o.Machines {
		m := &o.Machines[i]
		if m.Namespace != c.Namespace || m.Spec.ClusterName != c.Name {
			continue
		}
		kind, name, plane := ownerOf(m)
		owner := owners[kind+"/"+name]
		if owner == nil {
			owner = o.owner(c, kind, name, plane)
			owners[kind+"/"+name] = owner
			out.Owners = append(out.Owners, owner)
		}
		owner.objects = append(owner.objects, m)
	}
	for _, owner := range out.Owners {
		for i, m := range owner.objects {
			o.add(owner, m)
			o.addOutlook(c, owner, owner.Machines[i], m)
		}
		o.addGone(c, owner)
	}
	slices.SortFunc(out.Owners, func(a, b *Owner) int {
		if a.ControlPlane != b.ControlPlane {
			return map[bool]int{true: -1, false: 1}[a.ControlPlane]
		}
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, owner := range out.Owners {
		slices.SortFunc(owner.Machines, func(a, b *Machine) int { return cmp.Compare(a.Name, b.Name) })
		owner.count()
		owner.Running = owner.otherVersions()
	}
	return out
}

// ownerOf returns the owner that replaces a machine: its control plane, its MachineDeployment or else its MachineSet, or another controller.
func ownerOf(m *clusterv1.Machine) (kind, name string, plane bool) {
	_, plane = m.Labels[clusterv1.MachineControlPlaneLabel]
	ref := metav1.GetControllerOf(m)
	switch {
	case ref == nil:
		return "", "", plane
	case ref.Kind == string(remediator.Set) && m.Labels[clusterv1.MachineDeploymentNameLabel] != "":
		return string(remediator.Deployment), m.Labels[clusterv1.MachineDeploymentNameLabel], plane
	default:
		return ref.Kind, ref.Name, plane
	}
}

// owner returns an owner by kind and name, filled in as far as it was read.
func (o *Objects) owner(c *clusterv1.Cluster, kind, name string, plane bool) *Owner {
	out := &Owner{Kind: kind, Name: name, ControlPlane: plane}
	from := o.findOwner(c.Namespace, kind, name)
	if from != nil {
		var facts remediator.OwnerFacts
		from.Fill(&facts, ownerkind.Children{})
		out.Replicas, out.Version, out.External = from.Replicas(), facts.Version, facts.ExternalEtcd
	}
	p := o.policy(c, kind)
	if from != nil {
		_, out.Paused = from.GetAnnotations()[clusterv1.PausedAnnotation]
		if plane && !out.External {
			out.addEtcd(o.States[from.GetUID()], p)
		}
	}
	if p != nil {
		out.times = observe.Policy(p)
		out.Policy = &Policy{Name: p.Name, Unreadable: observe.Unreadable(p), DryRun: p.Spec.DryRun, PauseRequests: p.Spec.PauseRequests, MassFailure: p.Status.MassFailure}
	}
	return out
}

// findOwner returns an owner that was read, or nil.
func (o *Objects) findOwner(namespace, kind, name string) ownerkind.Owner {
	i := slices.IndexFunc(o.Owners, func(x ownerkind.Owner) bool {
		return string(x.OwnerKind()) == kind && x.GetNamespace() == namespace && x.GetName() == name
	})
	if i < 0 {
		return nil
	}
	return o.Owners[i]
}

// policy returns the RepairPolicy that selects an owner's machines, or nil.
func (o *Objects) policy(c *clusterv1.Cluster, kind string) *v1alpha1.RepairPolicy {
	var inside []v1alpha1.RepairPolicy
	for i := range o.Policies {
		if o.Policies[i].Namespace == c.Namespace {
			inside = append(inside, o.Policies[i])
		}
	}
	return observe.Select(inside, c.Labels, kind)
}

func (o *Objects) add(owner *Owner, m *clusterv1.Machine) {
	out := &Machine{
		Name: m.Name, Node: m.Status.NodeRef.Name, CreatedAt: m.CreationTimestamp.Time, Phase: m.Status.Phase,
		Zone: cmp.Or(m.Status.FailureDomain, m.Spec.FailureDomain), Version: m.Spec.Version,
		Deleting: m.DeletionTimestamp != nil, Mark: decodeMark(m.Annotations[v1alpha1.UnhealthyAnnotation]),
	}
	out.NodeReady, _ = truth(m.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	if c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineNodeReadyCondition); c != nil && c.Status != metav1.ConditionTrue {
		out.NotReadySince = c.LastTransitionTime.Time
	}
	out.HealthCheck, out.HealthCheckMessage = truth(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	if owner.ControlPlane {
		out.Etcd, out.EtcdMessage = truth(m.Status.Conditions, controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition)
		for _, component := range components() {
			pod, _ := truth(m.Status.Conditions, component)
			out.Pods = append(out.Pods, pod)
		}
	}
	for _, a := range []string{
		clusterv1.PausedAnnotation, clusterv1.MachineSkipRemediationAnnotation, clusterv1.RemediateMachineAnnotation, clusterv1.DeleteMachineAnnotation,
	} {
		if _, there := m.Annotations[a]; there {
			out.Annotations = append(out.Annotations, a)
		}
	}
	o.addRemediation(owner, out, m)
	owner.Machines = append(owner.Machines, out)
}

// addRemediation fills in the remediation of a machine from the log if the log was read, and otherwise from its SurgeRemediation.
func (o *Objects) addRemediation(owner *Owner, out *Machine, m *clusterv1.Machine) {
	var s v1alpha1.SurgeRemediationStatus
	known := false
	if i := slices.IndexFunc(o.Remediations, func(r v1alpha1.SurgeRemediation) bool { return r.Namespace == m.Namespace && r.Name == m.Name }); i >= 0 {
		s, known = o.Remediations[i].Status, true
	}
	state := o.States[m.UID]
	if state != nil {
		if logged, ok := remediator.Status(state, m.UID); ok && logged.FinishedAt == nil {
			s, known = logged, true
		}
		if u := state.Unhealthy[m.UID]; u != nil && u.Mark.State != "" && (out.Mark == nil || out.Mark.State == markFailing) { // a dry run does not annotate the Machine
			out.Mark = &v1alpha1.UnhealthyMark{State: string(u.Mark.State), Since: metav1.NewTime(u.Mark.Since), Reason: u.Mark.Reason, Source: string(u.Mark.Source)}
		}
	}
	if !known {
		return
	}
	out.Remediation = &Remediation{Phase: s.Phase, Decision: s.Decision, Message: s.Message, Next: s.Next, Replacement: s.Replacement, Attempts: s.Attempts}
	if s.Quorum != nil && owner.ControlPlane {
		owner.Quorum = s.Quorum
		if state == nil {
			owner.Leader, owner.Learners = s.Quorum.Leader, s.Quorum.Learners
		}
	}
	if state == nil {
		return
	}
	if u := state.Unhealthy[m.UID]; u != nil && u.DecidedAt.After(owner.ProbedAt) && u.Evidence.Voters > 0 {
		owner.Silent, owner.ProbedAt = u.Evidence.Silent, u.DecidedAt
		if u.DecidedAt.After(owner.reportedAt) {
			owner.Leader, owner.Learners = u.Evidence.Leader, u.Evidence.Joining
		}
	}
}

// addOutlook fills in what happens next to a machine, as far as the log and the objects show.
func (o *Objects) addOutlook(c *clusterv1.Cluster, owner *Owner, out *Machine, m *clusterv1.Machine) {
	state := o.States[m.UID]
	if state == nil || out.Remediation == nil {
		return
	}
	learners := owner.Learners
	if u := state.Unhealthy[m.UID]; u != nil && len(learners) == 0 {
		learners = u.Evidence.Joining
	}
	f := observe.FromObjects(c, o.findOwner(c.Namespace, owner.Kind, owner.Name), owner.objects, o.sets(c, owner), owner.times, learners)
	if f.Owner.Name == "" { // the owner was not read
		f.Owner.Owner, f.Owner.Found = state.Owner, true
	}
	if o.Limits != nil {
		f.Fleet.Limits = observe.Limits(o.Limits)
	}
	f.CountStarted(state, o.states(), o.Now)
	if ahead, ok := remediator.OutlookOf(state, m.UID, f, o.Now); ok {
		out.Remediation.Outlook = &ahead
	}
}

// addGone adds machines that no longer exist and whose remediation waits for the replacement.
func (o *Objects) addGone(c *clusterv1.Cluster, owner *Owner) {
	from := o.findOwner(c.Namespace, owner.Kind, owner.Name)
	if from == nil || o.States[from.GetUID()] == nil {
		return
	}
	for _, a := range o.States[from.GetUID()].InProgress() {
		if slices.ContainsFunc(owner.objects, func(m *clusterv1.Machine) bool { return m.UID == a.Victim.UID }) {
			continue
		}
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: a.Victim.Name, UID: a.Victim.UID}}
		out := &Machine{Name: m.Name, Deleting: true}
		o.addRemediation(owner, out, m)
		o.addOutlook(c, owner, out, m)
		owner.Gone = append(owner.Gone, out)
	}
}

// states returns each state in the log once.
func (o *Objects) states() []*remediator.State {
	seen := make(map[*remediator.State]bool)
	for _, state := range o.States {
		seen[state] = true
	}
	return slices.Collect(maps.Keys(seen))
}

// sets returns the MachineSets of a MachineDeployment.
func (o *Objects) sets(c *clusterv1.Cluster, owner *Owner) []clusterv1.MachineSet {
	var sets []clusterv1.MachineSet
	for _, x := range o.Owners {
		if x.OwnerKind() == remediator.Set && x.GetNamespace() == c.Namespace && owner.Kind == string(remediator.Deployment) && x.GetLabels()[clusterv1.MachineDeploymentNameLabel] == owner.Name {
			sets = append(sets, clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: x.GetName(), Annotations: x.GetAnnotations(), CreationTimestamp: x.GetCreationTimestamp()}})
		}
	}
	return sets
}

// addEtcd fills in what the members reported, as recorded in the log. If the log has no report, it fills in the problems in the status of the policy.
func (o *Owner) addEtcd(state *remediator.State, p *v1alpha1.RepairPolicy) {
	if state != nil && !state.Etcd.At.IsZero() {
		o.Leader, o.Learners, o.reportedAt = state.Etcd.Leader, state.Etcd.Learners, state.Etcd.At
		o.Databases, o.Problems = state.Etcd.Databases, remediator.EtcdStatus(state)
		return
	}
	if p != nil {
		for _, e := range p.Status.Etcd {
			if e.ControlPlane == o.Name {
				o.Problems = append(o.Problems, e)
			}
		}
	}
}

// decodeMark decodes the annotation of an unhealthy machine. If the annotation is invalid, it returns a mark with this reason.
func decodeMark(value string) *v1alpha1.UnhealthyMark {
	if value == "" {
		return nil
	}
	var out v1alpha1.UnhealthyMark
	if err := json.Unmarshal([]byte(value), &out); err != nil {
		return &v1alpha1.UnhealthyMark{State: "not readable", Reason: "annotation " + v1alpha1.UnhealthyAnnotation + " is not what scute writes"}
	}
	return &out
}

func truth(list []metav1.Condition, name string) (is object.ConditionStatus, message string) {
	for i := range list {
		if list[i].Type == name {
			return object.ConditionStatus(list[i].Status), list[i].Message
		}
	}
	return object.Absent, ""
}

// otherVersions returns the versions of machines that differ from the owner's version, sorted, or "" if there are none.
func (o *Owner) otherVersions() string {
	var others []string
	for _, m := range o.Machines {
		if m.Version != "" && m.Version != o.Version && !slices.Contains(others, m.Version) {
			others = append(others, m.Version)
		}
	}
	slices.Sort(others)
	return strings.Join(others, ", ")
}

// count counts the machines whose Node is ready, and etcd's members by the conditions of their machines.
func (o *Owner) count() {
	for _, m := range o.Machines {
		if m.NodeReady == object.True && !m.Deleting {
			o.ready++
		}
	}
	if !o.ControlPlane || o.External {
		return
	}
	for _, m := range o.Machines {
		m.Silent = m.Node != "" && slices.Contains(o.Silent, m.Node)
		m.IsLeader, m.IsLearner = m.Node != "" && m.Node == o.Leader, m.Node != "" && slices.Contains(o.Learners, m.Node)
		if m.Etcd == object.Absent {
			continue
		}
		if o.Listed == nil {
			o.Listed = &Members{}
		}
		o.Listed.Members++
		if m.Etcd == object.True {
			o.Listed.Healthy++
		}
	}
}
