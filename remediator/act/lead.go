package act

import (
	"context"
	"errors"
	"time"
)

// leadFor bounds the asking of etcd by every way, which is tried once: at the next try, another member may be the better choice.
const leadFor = 20 * time.Second

var errNoLeader = errors.New("cannot transfer etcd leadership: no etcd client configured")

// lead has etcd led by a member that stays, before its leader goes.
func (d *execution) lead(ctx context.Context) error {
	switch {
	case !d.ofControlPlane():
		return errors.New("only a control plane has an etcd")
	case d.Leader == nil:
		return errNoLeader
	case d.Value == "":
		return errors.New("no node is named whose member shall lead")
	}
	for _, m := range d.facts.Machines {
		if m.Name == d.Machine.Name && m.Node == d.Value {
			return foreign("the member of node %s is the machine's own", d.Value)
		}
	}
	if err := d.allowed(ctx, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leadFor)
	defer cancel()
	return d.Leader.MoveLeader(ctx, d.clusterKey(), d.facts.Nodes(), d.Value)
}
