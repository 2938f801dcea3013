package ownerkind

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/remediator"
)

type deployment struct {
	plain
	*clusterv1.MachineDeployment
}

func (o deployment) Owner() remediator.Owner         { return identity(o, o.Spec.ClusterName) }
func (o deployment) OwnerKind() remediator.OwnerKind { return remediator.Deployment }
func (o deployment) Replicas() *int32                { return o.Spec.Replicas }
func (o deployment) SetReplicas(replicas int32)      { o.Spec.Replicas = &replicas }
func (o deployment) ObservedGeneration() int64       { return o.Status.ObservedGeneration }
func (o deployment) TopologyEntry() string {
	return o.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
}

func (o deployment) Fill(f *remediator.OwnerFacts, below Children) {
	f.Version = o.Spec.Template.Spec.Version
	f.Paused = f.Paused || o.Spec.Paused != nil && *o.Spec.Paused
	f.Sets = setsByAge(below.Sets, o.Annotations[clusterv1.RevisionAnnotation])
	for i := range below.Sets { // the current one is last
		set := &below.Sets[i]
		f.Refused = cmp.Or(refusal(set), f.Refused)
		if set.Annotations[clusterv1.MachineSetMoveMachinesToMachineSetAnnotation] != "" && ptr.Deref(set.Status.Replicas, 0) > ptr.Deref(set.Spec.Replicas, 0) {
			f.Moving = append(f.Moving, set.Name)
		}
	}
	if surge := o.Spec.Rollout.Strategy.RollingUpdate.MaxSurge; surge != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(surge, int(f.Replicas), true); err == nil {
			f.MaxSurge = int32(n) //nolint:gosec // at most the number of machines
		}
	}
	f.OnDelete = o.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType
	if !f.OnDelete {
		f.RollingOut = rollingOut(below.Machines, f.Version)
	}
}

// setsByAge returns the names of a MachineDeployment's MachineSets, the oldest first, but the
// current revision last. A MachineDeployment without a revision has at most one MachineSet.
func setsByAge(sets []clusterv1.MachineSet, revision string) []string {
	slices.SortFunc(sets, func(a, b clusterv1.MachineSet) int {
		x, y := a.Annotations[clusterv1.RevisionAnnotation] == revision, b.Annotations[clusterv1.RevisionAnnotation] == revision
		switch {
		case x && !y:
			return 1
		case y && !x:
			return -1
		}
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var names []string
	for i := range sets {
		names = append(names, sets[i].Name)
	}
	return names
}

func (o deployment) Strip() {
	o.Spec = clusterv1.MachineDeploymentSpec{
		ClusterName: o.Spec.ClusterName, Replicas: o.Spec.Replicas, Rollout: o.Spec.Rollout, Paused: o.Spec.Paused, Template: version(o.Spec.Template),
	}
	o.Status = clusterv1.MachineDeploymentStatus{
		Conditions: o.Status.Conditions, Replicas: o.Status.Replicas, ReadyReplicas: o.Status.ReadyReplicas, ObservedGeneration: o.Status.ObservedGeneration,
	}
}

func version(t clusterv1.MachineTemplateSpec) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{ClusterName: t.Spec.ClusterName, Version: t.Spec.Version}}
}
