package observe

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/kube/tenant"
	"scute.dev/remediator"
)

const (
	// askFor bounds all questions to one cluster, however many machines it has and however slowly it answers.
	askFor = 20 * time.Second
	// tooLate is why a member was not asked.
	tooLate = "not asked: asking this cluster has taken all the time that there is for it"
	// reachTimeout bounds the probe of the workload cluster's API server, memberTimeout that of one member of etcd.
	reachTimeout  = 3 * time.Second
	memberTimeout = 3 * time.Second
	// secretTimeout bounds the reading of a Secret that says how to get there.
	secretTimeout = 5 * time.Second
)

// Ask fills f.Cluster.Reach and, for a control plane with stacked etcd, f.Etcd, by asking now. What does not answer is
// a fact, not an error. It takes up to 3 s for the API server and nine members that machines have, side by side; up to
// 3 s more for members that no machine has; and, where a member could not be asked, up to 8 s more for asking its
// peers. It never takes more than 20 s. Connections are closed when it returns.
func (o *Observer) Ask(ctx context.Context, f *remediator.Facts) error {
	f.Etcd = nil
	f.Cluster.Reach = object.Unknown
	if f.Owner.Cluster == "" {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	key := types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster}
	asked := remediator.OwnerKind(f.Owner.Kind).IsControlPlane() && !f.Owner.ExternalEtcd
	cluster, err := o.workload(asking, key)
	if err != nil {
		if asked {
			f.Etcd = &remediator.Etcd{Err: err.Error()}
		}
		return ctx.Err()
	}
	reach := make(chan object.Truth, 1)
	go func() { reach <- answersAtAll(asking, cluster) }()
	if asked {
		f.Etcd = o.etcd(asking, key, cluster, f.Nodes())
	}
	f.Cluster.Reach = <-reach
	return ctx.Err()
}

// answersAtAll says whether an API server answers.
func answersAtAll(ctx context.Context, cluster *tenant.Cluster) object.Truth {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if cluster.Answers(ctx) != nil {
		return object.False
	}
	return object.True
}

// etcd asks each member itself. Err of what is returned says why none could be.
func (o *Observer) etcd(ctx context.Context, key types.NamespacedName, cluster *tenant.Cluster, nodes []string) *remediator.Etcd {
	d, err := o.dialer(ctx, key, cluster)
	if err != nil {
		return &remediator.Etcd{Err: err.Error()}
	}
	if len(nodes) == 0 {
		return &remediator.Etcd{Err: "no machine has a node, so there is no member to ask"}
	}
	return d.survey(ctx, nodes)
}

// MoveLeader moves etcd's leadership to the member of a node, asking the leader for it: one of those on the nodes given.
// Where that member leads already, nothing is done.
func (o *Observer) MoveLeader(ctx context.Context, key types.NamespacedName, nodes []string, to string) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	d, err := o.reach(ctx, key)
	if err == nil {
		err = d.moveLeader(ctx, nodes, to)
	}
	if err != nil {
		return fmt.Errorf("moving the leadership of etcd in %s to %s: %w", key, to, err)
	}
	return nil
}
