package act

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// disarmFor bounds the asking of etcd to disarm an alarm.
const disarmFor = 20 * time.Second

// Databases defragments the databases of a workload cluster's etcd, which it reaches by way of the given nodes.
type Databases interface {
	// Defragment defragments the member of a node, unless its database has less than so many bytes. It returns when that is over.
	Defragment(ctx context.Context, cluster types.NamespacedName, nodes []string, node string, size int64) error
	// Disarm disarms the alarm NOSPACE of all members.
	Disarm(ctx context.Context, cluster types.NamespacedName, nodes []string) error
}

var errNoDatabases = errors.New("cannot defragment etcd: no etcd client configured")

// defragment has one member of etcd defragmented, that does not lead where another one can. What was in progress when the action was
// decided is read again before.
func (d *execution) defragment(ctx context.Context) error {
	switch {
	case !d.ofControlPlane():
		return errors.New("only a control plane has an etcd")
	case d.Databases == nil:
		return errNoDatabases
	}
	if err := d.allowed(ctx, nil); err != nil {
		return err
	}
	if d.To != "" {
		leading, cancel := context.WithTimeout(ctx, leadFor)
		defer cancel()
		if d.Leader == nil {
			return errNoLeader
		}
		if err := d.Leader.MoveLeader(leading, d.clusterKey(), d.facts.Nodes(), d.To); err != nil {
			return err
		}
	}
	return d.Databases.Defragment(ctx, d.clusterKey(), d.facts.Nodes(), d.Value, d.Size)
}

// disarm disarms the alarm NOSPACE.
func (d *execution) disarm(ctx context.Context) error {
	if d.Databases == nil {
		return errNoDatabases
	}
	if err := d.allowedByOwner(ctx, nil); err != nil {
		return err
	}
	if err := d.allowedByCluster(ctx, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, disarmFor)
	defer cancel()
	return d.Databases.Disarm(ctx, d.clusterKey(), d.facts.Nodes())
}
