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

// Known is what objects that were read say of an owner, for a tool that shows what happens next and cannot ask what a daemon asks. o is
// nil where it was not read; the machines are the owner's. Of etcd it has the learners that the log has.
func Known(cluster *clusterv1.Cluster, o ownerkind.Owner, machines []*clusterv1.Machine, sets []clusterv1.MachineSet, policy remediator.Policy, learners []string) *remediator.Facts {
	l := &look{facts: &remediator.Facts{Policy: policy}}
	f := l.facts
	l.fillCluster(cluster)
	f.Cluster.Reach, f.Cluster.BlindFor = object.True, time.Hour // what was not seen is not about to be
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
