package remediation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
	"scute.dev/remediator/observe"
	"scute.dev/remediator/ownerkind"
)

// machines returns the machines of all clusters, sorted by namespace, cluster, owner and name. It
// includes deleted machines whose replacement is not ready.
func (o *Objects) machines() (out []*machine) {
	there := make(map[types.UID]bool)
	for i := range o.Machines {
		m := &o.Machines[i]
		there[m.UID] = true
		if c := o.cluster(m.Namespace, m.Spec.ClusterName); c != nil {
			out = append(out, o.join(c, m))
		}
	}
	for _, state := range o.states() {
		c := o.cluster(state.Owner.Namespace, state.Owner.Cluster)
		for _, a := range state.InProgress() {
			if c == nil || there[a.Victim.UID] {
				continue
			}
			gone := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: a.Victim.Name, UID: a.Victim.UID}}
			m := o.join(c, gone)
			m.Health, m.Owner, m.controlPlane = deleted, state.Owner.Kind+" "+state.Owner.Name, remediator.OwnerKind(state.Owner.Kind).IsControlPlane()
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *machine) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (o *Objects) cluster(namespace, name string) *clusterv1.Cluster {
	i := slices.IndexFunc(o.Clusters, func(c clusterv1.Cluster) bool { return c.Namespace == namespace && c.Name == name })
	if i < 0 {
		return nil
	}
	return &o.Clusters[i]
}

func (o *Objects) join(c *clusterv1.Cluster, m *clusterv1.Machine) *machine {
	kind, name := replacerOf(m)
	out := &machine{Namespace: m.Namespace, Cluster: c.Name, Owner: strings.TrimSpace(kind + " " + name), Name: m.Name}
	_, out.controlPlane = m.Labels[clusterv1.MachineControlPlaneLabel]
	out.Remediation = o.remediation(c, m)
	mark := decodeMark(m.Annotations[v1alpha1.UnhealthyAnnotation])
	if s := o.States[m.UID]; s != nil && (mark == nil || mark.State == failing) { // a dry run does not annotate the Machine
		if u := s.Unhealthy[m.UID]; u != nil && u.Mark.State != "" {
			mark = &v1alpha1.UnhealthyMark{State: string(u.Mark.State), Since: metav1.NewTime(u.Mark.Since), Reason: u.Mark.Reason, Source: string(u.Mark.Source)}
		}
	}
	out.setHealth(m, mark)
	out.setMarks(m)
	return out
}

// replacerOf returns the owner that replaces a machine. That is the machine's controller or, if
// this is a MachineSet of a MachineDeployment, the MachineDeployment.
func replacerOf(m *clusterv1.Machine) (kind, name string) {
	ref := metav1.GetControllerOf(m)
	switch {
	case ref == nil:
		return "", ""
	case ref.Kind == string(remediator.Set) && m.Labels[clusterv1.MachineDeploymentNameLabel] != "":
		return string(remediator.Deployment), m.Labels[clusterv1.MachineDeploymentNameLabel]
	default:
		return ref.Kind, ref.Name
	}
}

// remediation returns the remediation of a machine, or nil. If the log contains an unfinished
// remediation, it uses the log rather than the SurgeRemediation.
func (o *Objects) remediation(c *clusterv1.Cluster, m *clusterv1.Machine) *machineRemediation {
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
	}
	if !known {
		return nil
	}
	out := &machineRemediation{Phase: s.Phase, Decision: s.Decision, Message: s.Message, Next: s.Next, Replacement: s.Replacement, Attempts: s.Attempts}
	if state != nil {
		if ahead, ok := remediator.OutlookOf(state, m.UID, o.facts(c, m, state), o.Now); ok {
			out.Outlook = &ahead
		}
	}
	return out
}

// facts returns the facts on which a machine's outlook depends, as far as the log and the objects
// contain them.
func (o *Objects) facts(c *clusterv1.Cluster, m *clusterv1.Machine, state *remediator.State) *remediator.Facts {
	kind, name := replacerOf(m)
	if name == "" { // the Machine no longer exists
		kind, name = state.Owner.Kind, state.Owner.Name
	}
	var machines []*clusterv1.Machine
	for i := range o.Machines {
		other := &o.Machines[i]
		if k, n := replacerOf(other); k == kind && n == name && other.Namespace == c.Namespace && other.Spec.ClusterName == c.Name {
			machines = append(machines, other)
		}
	}
	var owner ownerkind.Owner
	var sets []clusterv1.MachineSet
	for _, x := range o.Owners {
		switch {
		case x.GetNamespace() != c.Namespace:
		case string(x.OwnerKind()) == kind && x.GetName() == name:
			owner = x
		case x.OwnerKind() == remediator.Set && kind == string(remediator.Deployment) && x.GetLabels()[clusterv1.MachineDeploymentNameLabel] == name:
			sets = append(sets, clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: x.GetName(), Annotations: x.GetAnnotations(), CreationTimestamp: x.GetCreationTimestamp()}})
		}
	}
	inside := slices.DeleteFunc(slices.Clone(o.Policies), func(p v1alpha1.RepairPolicy) bool { return p.Namespace != c.Namespace })
	var policy remediator.Policy
	if p := observe.Select(inside, c.Labels, kind); p != nil {
		policy = observe.Policy(p)
	}
	f := observe.FromObjects(c, owner, machines, sets, policy, learners(state, m))
	if f.Owner.Name == "" { // the owner was not read
		f.Owner.Owner, f.Owner.Found = state.Owner, true
	}
	if o.Limits != nil {
		f.Fleet.Limits = observe.Limits(o.Limits)
	}
	f.CountStarted(state, o.states(), o.Now)
	return f
}

// learners returns the learners that etcd had when scute last asked it.
func learners(state *remediator.State, m *clusterv1.Machine) []string {
	u := state.Unhealthy[m.UID]
	switch {
	case !state.Etcd.At.IsZero() && (u == nil || !u.DecidedAt.After(state.Etcd.At)):
		return state.Etcd.Learners
	case u != nil:
		return u.Evidence.Joining
	default:
		return nil
	}
}

// states returns the distinct states in the log.
func (o *Objects) states() []*remediator.State {
	seen := make(map[*remediator.State]bool)
	for _, state := range o.States {
		seen[state] = true
	}
	return slices.Collect(maps.Keys(seen))
}
