package observe

import (
	"cmp"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/remediator/ownerkind"
)

// FromObjects returns the facts in objects that were already read, for a tool that shows the next steps and cannot send the requests of a daemon. o is nil
// if the owner was not read; the machines are the owner's. Etcd contains only the learners recorded in the log.
func FromObjects(cluster *clusterv1.Cluster, o ownerkind.Owner, machines []*clusterv1.Machine, sets []clusterv1.MachineSet, policy remediator.Policy, learners []string) *remediator.Facts {
	l := &observation{facts: &remediator.Facts{Policy: policy}}
	f := l.facts
	l.fillCluster(cluster)
	f.Cluster.Reachable, f.Cluster.BlindFor = object.True, time.Hour // no grace period: what was not read stays unread
	l.found = slices.Clone(machines)
	slices.SortFunc(l.found, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range l.found {
		f.Machines = append(f.Machines, machine(m))
	}
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
	l.sets = sets
	l.fillOwner(o)
	return f
}
