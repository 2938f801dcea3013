package act

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// etcdTimeout bounds moving the leadership and disarming an alarm by all routes. Each route is
// tried once, because another member may be the better leader at the next reconciliation.
const etcdTimeout = 20 * time.Second

// Etcd changes the etcd of a workload cluster. It reaches the members through the given nodes.
type Etcd interface {
	// MoveLeader moves the leadership to the member of a node. It does nothing if that member already leads.
	MoveLeader(ctx context.Context, cluster types.NamespacedName, nodes []string, to string) error
	// Defragment defragments the member of a node if its database has at least size bytes, and
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

// moveLeadership moves the leadership of etcd to a member that stays, before the leader's machine is removed.
func (d *execution) moveLeadership(ctx context.Context) error {
	if err := d.checkAllowed(ctx, nil); err != nil {
		return err
	}
	return d.moveLeader(ctx, d.Value)
}

// defragment defragments one member of etcd. If the member leads and another can lead, it first
// moves the leadership.
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
