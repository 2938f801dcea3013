package act

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// etcdTimeout limits a move of the leadership, or the disarming of an alarm, by all routes
// together. Each route is tried only once, because a different member may be the best leader at the
// next reconciliation.
const etcdTimeout = 20 * time.Second

// Etcd changes the etcds of workload clusters. Its methods reach the members through the given
// nodes.
type Etcd interface {
	// MoveLeader moves the leadership to the member on node to. It does nothing if that member already leads.
	MoveLeader(ctx context.Context, cluster types.NamespacedName, nodes []string, to string) error
	// Defragment defragments the member on a node if its database has at least size bytes, and
	// waits until the member has finished.
	Defragment(ctx context.Context, cluster types.NamespacedName, nodes []string, node string, size int64) error
	// Disarm disarms the NOSPACE alarms of all members.
	Disarm(ctx context.Context, cluster types.NamespacedName, nodes []string) error
}

func onEtcd(perform performer) performer {
	return func(d *execution, ctx context.Context) error {
		switch {
		case !d.isControlPlane():
			return errors.New("only a control plane has an etcd")
		case d.Etcd == nil:
			return errors.New("no etcd client is configured")
		default:
			return perform(d, ctx)
		}
	}
}

func (d *execution) moveLeader(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	return d.Etcd.MoveLeader(ctx, d.clusterKey(), d.facts.Nodes(), to)
}

// moveLeadership moves the leadership of etcd to the member on node Value, before the owner deletes
// the machine of the present leader.
func (d *execution) moveLeadership(ctx context.Context) error {
	if err := d.checkAllowed(ctx, nil); err != nil {
		return err
	}
	return d.moveLeader(ctx, d.Value)
}

// defragment defragments the etcd member on node Value. If NewLeader is set, it first moves the
// leadership to the member on that node.
func (d *execution) defragment(ctx context.Context) error {
	if err := d.checkAllowed(ctx, nil); err != nil {
		return err
	}
	if d.NewLeader != "" {
		if err := d.moveLeader(ctx, d.NewLeader); err != nil {
			return err
		}
	}
	return d.Etcd.Defragment(ctx, d.clusterKey(), d.facts.Nodes(), d.Value, d.Size)
}

func (d *execution) disarm(ctx context.Context) error {
	if err := errors.Join(d.checkOwner(ctx, nil), d.checkCluster(ctx, nil)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	return d.Etcd.Disarm(ctx, d.clusterKey(), d.facts.Nodes())
}
