package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/kube/tenant"
	"scute.dev/remediator"
)

const (
	// probeTimeout bounds all requests to one cluster, however many machines it has and however slowly it responds.
	probeTimeout = 20 * time.Second
	// notQueried is the reason of a member that was not queried in time.
	notQueried = "not asked: the time for asking this cluster is used up"
	// reachTimeout bounds the probe of the workload cluster's API server, memberTimeout that of one member of etcd.
	reachTimeout  = 3 * time.Second
	memberTimeout = 3 * time.Second
	// secretTimeout bounds reading a Secret with credentials of the cluster.
	secretTimeout = 5 * time.Second
)

// Probe queries the API server and, for a control plane with stacked etcd, the members of etcd. It returns the facts with Cluster.Reachable and Etcd. A
// missing response is a fact, not an error. It takes up to 3 s for the API server and the members of nine machines in parallel, up to 3 s more for
// members without a machine, and up to 8 s more to query peers if a member could not be queried. The total is limited to 20 s. Connections are
// closed when it returns.
func (o *Observer) Probe(ctx context.Context, seen *remediator.Facts) (*remediator.Facts, error) {
	f := *seen
	f.Cluster.Reachable, f.Etcd = object.Unknown, nil
	if f.Owner.Cluster == "" {
		return &f, nil
	}
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	key := types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster}
	asked := remediator.OwnerKind(f.Owner.Kind).IsControlPlane() && !f.Owner.ExternalEtcd
	cluster, err := o.workload(asking, key)
	if err != nil {
		if asked {
			f.Etcd = &remediator.Etcd{Err: err.Error()}
		}
		return &f, ctx.Err()
	}
	reach := make(chan object.ConditionStatus, 1)
	go func() { reach <- apiServerAnswers(asking, cluster) }()
	if asked {
		f.Etcd = o.etcd(asking, key, cluster, f.Nodes())
	}
	f.Cluster.Reachable = <-reach
	return &f, ctx.Err()
}

// apiServerAnswers returns whether an API server answers.
func apiServerAnswers(ctx context.Context, cluster *tenant.Cluster) object.ConditionStatus {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if cluster.Ping(ctx) != nil {
		return object.False
	}
	return object.True
}

// etcd queries each member directly. Err of the result is the reason if none could be queried.
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
