package main

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/inventory"
	"scute.dev/test/soak"
	"scute.dev/test/testbed"
)

// target is the target of a fault: a machine of a cluster.
type target struct {
	*testbed.Workload
	cluster string
	side    *side
	machine clusterv1.Machine
}

func (t *target) node() string { return t.machine.Status.NodeRef.Name }

func split(cluster string) client.ObjectKey {
	namespace, name, _ := strings.Cut(cluster, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// home returns the side on which a cluster is active, and true, or the side that has it, and false.
func (p *player) home(ctx context.Context, cluster string) (on *side, acts bool, err error) {
	for _, one := range p.sides {
		c := &clusterv1.Cluster{}
		err := one.admin.Get(ctx, split(cluster), c)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, false, err
		}
		paused := c.Spec.Paused != nil && *c.Spec.Paused
		if err == nil && !paused {
			return one, true, nil
		}
		if err == nil && on == nil {
			on = one
		}
	}
	if on == nil {
		return nil, false, withheld("no side has %s at this moment", cluster)
	}
	return on, false, nil
}

// machinesOf returns the machines of a cluster on a side, the oldest first.
func machinesOf(ctx context.Context, on *side, cluster string, controlPlane bool) ([]clusterv1.Machine, error) {
	return inventory.Machines(ctx, on.admin, split(cluster), controlPlane)
}

// choose returns n running machines without a fault. The fault's Pick selects them.
func (p *player) choose(ctx context.Context, f soak.Fault, controlPlane bool, n int) ([]*target, error) {
	on, _, err := p.home(ctx, f.Where)
	if err != nil {
		return nil, err
	}
	machines, err := machinesOf(ctx, on, f.Where, controlPlane)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	machines = slices.DeleteFunc(machines, func(m clusterv1.Machine) bool {
		return !m.DeletionTimestamp.IsZero() || m.Status.NodeRef.Name == "" || p.world.HasFault(m.Name)
	})
	p.mu.Unlock()
	if len(machines) < n {
		return nil, withheld("%d machines that run and are healthy, %d needed", len(machines), n)
	}
	key := split(f.Where)
	var chosen []*target
	for i := range n {
		m := machines[(int(f.Pick)+i)%len(machines)]
		chosen = append(chosen, &target{Workload: p.bed.Workload(key.Namespace, key.Name), cluster: f.Where, side: on, machine: m})
	}
	return chosen, nil
}

// chooseMember returns a control plane machine whose etcd member may become silent now without a loss of quorum.
func (p *player) chooseMember(ctx context.Context, f soak.Fault) (*target, error) {
	chosen, err := p.choose(ctx, f, true, 1)
	if err != nil {
		return nil, err
	}
	t := chosen[0]
	machines, err := machinesOf(ctx, t.side, f.Where, true)
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if !machines[i].DeletionTimestamp.IsZero() {
			return nil, withheld("%s is being deleted", machines[i].Name)
		}
	}
	members, err := p.bed.Cloud().Etcd(ctx, f.Where)
	if err != nil {
		return nil, err
	}
	answering := 0
	for _, m := range members {
		if m.Answers {
			answering++
		}
	}
	if answering < len(members) || len(members) != len(machines) || !soak.Spared(len(members), answering) {
		return nil, withheld("%d of %d members of etcd answer, for %d machines: none can be spared", answering, len(members), len(machines))
	}
	return t, nil
}

// do breaks the chosen machines. The undo restores each machine that still exists.
func (p *player) do(ctx context.Context, targets []*target, breakIt, restore func(context.Context, *target) error) (undo, string, error) {
	var names []string
	for _, t := range targets {
		names = append(names, t.machine.Name)
		p.mu.Lock()
		p.world.BeginFault(t.machine.Name)
		p.mu.Unlock()
	}
	left := slices.Clone(targets)
	u := func(ctx context.Context) error {
		for len(left) > 0 {
			t := left[0]
			if err := restore(ctx, t); err != nil && !p.gone(ctx, t) {
				return err
			}
			p.mu.Lock()
			p.world.EndFault(t.machine.Name, time.Now())
			p.mu.Unlock()
			left = left[1:]
		}
		return nil
	}
	for _, t := range targets {
		if err := breakIt(ctx, t); err != nil {
			return u, "", err // it may have succeeded in part
		}
	}
	return u, strings.Join(names, " and "), nil
}

// gone reports whether a machine no longer exists in the cloud.
func (p *player) gone(ctx context.Context, t *target) bool {
	machines, err := p.bed.Cloud().Machines(ctx, t.cluster)
	return err == nil && !slices.Contains(machines, t.machine.Spec.InfrastructureRef.Name)
}

func (p *player) node(ctx context.Context, f soak.Fault, controlPlane bool) (undo, string, error) {
	targets, err := p.choose(ctx, f, controlPlane, 1)
	if err != nil {
		return nil, "", err
	}
	return p.do(ctx, targets,
		func(ctx context.Context, t *target) error { return t.BreakNode(ctx, t.node(), corev1.ConditionFalse) },
		func(ctx context.Context, t *target) error { return t.RestoreNode(ctx, t.node()) })
}

func (p *player) nodeNotReady(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.node(ctx, f, true)
}

func (p *player) nodeSilent(ctx context.Context, f soak.Fault) (undo, string, error) {
	targets, err := p.choose(ctx, f, true, 1)
	if err != nil {
		return nil, "", err
	}
	return p.do(ctx, targets,
		func(ctx context.Context, t *target) error { return t.StopKubelet(ctx, t.node()) },
		func(ctx context.Context, t *target) error { return t.StartKubelet(ctx, t.node()) })
}

func (p *player) workerNotReady(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.node(ctx, f, false)
}

// member breaks a machine whose etcd member may become silent without a loss of quorum.
func (p *player) member(ctx context.Context, f soak.Fault, breakIt, restore func(context.Context, *target) error) (undo, string, error) {
	t, err := p.chooseMember(ctx, f)
	if err != nil {
		return nil, "", err
	}
	return p.do(ctx, []*target{t}, breakIt, restore)
}

func powerOn(ctx context.Context, t *target) error { return t.PowerOn(ctx, t.node()) }

func powerOff(ctx context.Context, t *target) error { return t.PowerOff(ctx, t.node()) }

func (p *player) powerOff(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.member(ctx, f, powerOff, powerOn)
}

func (p *player) etcdSilent(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.member(ctx, f,
		func(_ context.Context, t *target) error { return t.CutEtcdOff(t.node()) },
		func(ctx context.Context, t *target) error { return t.RejoinEtcd(ctx, t.node()) })
}

func (p *player) etcdMemberRemoved(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.member(ctx, f,
		func(ctx context.Context, t *target) error {
			if err := t.BreakEtcdMember(ctx, t.node()); err != nil {
				return err
			}
			return t.BreakNode(ctx, t.node(), corev1.ConditionFalse)
		},
		func(ctx context.Context, t *target) error {
			if err := t.RestoreEtcdMember(ctx, t.node()); err != nil {
				return err
			}
			return t.RestoreNode(ctx, t.node())
		})
}

func (p *player) etcdPodNotReady(ctx context.Context, f soak.Fault) (undo, string, error) {
	targets, err := p.choose(ctx, f, true, 1)
	if err != nil {
		return nil, "", err
	}
	return p.do(ctx, targets,
		func(ctx context.Context, t *target) error { return t.BreakEtcdPod(ctx, t.node()) },
		func(ctx context.Context, t *target) error { return t.RestoreEtcdPod(ctx, t.node()) })
}

func (p *player) leaderMoved(ctx context.Context, f soak.Fault) (undo, string, error) {
	targets, err := p.choose(ctx, f, true, 1)
	if err != nil {
		return nil, "", err
	}
	return nil, targets[0].machine.Name, targets[0].Lead(ctx, targets[0].node())
}

// majorityOff turns off two of three machines. This is a disaster.
func (p *player) majorityOff(ctx context.Context, f soak.Fault) (undo, string, error) {
	targets, err := p.choose(ctx, f, true, 2)
	if err != nil {
		return nil, "", err
	}
	disaster := func(on bool) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.world.Disaster(f.Where, on)
	}
	disaster(true)
	u, what, err := p.do(ctx, targets, powerOff, powerOn)
	over := false
	return func(ctx context.Context) error {
		if err := u(ctx); err != nil {
			return err
		}
		if !over {
			over = true
			disaster(false)
		}
		return nil
	}, what + " (a majority: quorum may be lost now)", err
}

func (p *player) machineDeleted(ctx context.Context, f soak.Fault) (undo, string, error) {
	t, err := p.chooseMember(ctx, f)
	if err != nil {
		return nil, "", err
	}
	return p.delete(ctx, t)
}

func (p *player) workerDeleted(ctx context.Context, f soak.Fault) (undo, string, error) {
	targets, err := p.choose(ctx, f, false, 1)
	if err != nil {
		return nil, "", err
	}
	return p.delete(ctx, targets[0])
}

func (p *player) delete(ctx context.Context, t *target) (undo, string, error) {
	p.mu.Lock()
	p.world.Delete(t.machine.Name)
	p.mu.Unlock()
	return nil, t.machine.Name, t.side.admin.Delete(ctx, &t.machine)
}
