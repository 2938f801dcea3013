package remediator_test

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/remediator"
)

// node is a state of the search: a remediator, its simulated cluster, and the number of faults that may still happen.
type node struct {
	guard
	faultsLeft int // remaining faults
	deaths     int // remaining deaths of the process; -1 for any number
	trail      *trail
	logf       func(format string, args ...any)
}

// trail records how a state was reached.
type trail struct {
	before *trail
	move   string
}

func (t *trail) moves() []string {
	var all []string
	for ; t != nil; t = t.before {
		all = append(all, t.move)
	}
	slices.Reverse(all)
	return all
}

func (n *node) clone() *node {
	c := *n
	w := *n.w
	c.w = &w
	w.machines = make([]*machine, 0, len(n.w.machines)+1)
	for _, m := range n.w.machines {
		copied := *m
		copied.StepObjects = slices.Clone(m.StepObjects)
		if m.Request != nil {
			request := *m.Request
			copied.Request = &request
		}
		w.machines = append(w.machines, &copied)
	}
	w.orphans = slices.Clone(n.w.orphans)
	c.state = *n.state.Clone()
	return &c
}

// playRound performs one step of each participant.
func (n *node) playRound() string {
	n.recordMove(n.releaseOrders(), "somebody")
	if n.raced && n.state.Active == nil {
		*n.w.replicas() = n.desired
	}
	step := func() string { return n.turn(-1, nil).problem }
	act := func() string { did, wrong := n.act(); n.recordMove(did, "the owner"); return wrong }
	progress := func() string {
		for _, m := range slices.Clone(n.w.machines) {
			if m.Deleting && n.w.finishDeletion(m) {
				n.logf("%s is gone", m.Name)
			} else if m.Node == "" && n.w.join(m) {
				n.logf("%s joins", m.Name)
			}
		}
		return ""
	}
	for _, do := range []func() string{step, act, step, progress, step} {
		if wrong := do(); wrong != "" {
			return wrong
		}
	}
	n.advanceTime(time.Minute)
	return ""
}

// advanceTime advances the time. Machines whose announced stop time has come stop, without counting as a further fault.
func (n *node) advanceTime(d time.Duration) {
	n.w.now = n.w.now.Add(d)
	for _, m := range n.w.machines {
		if at := m.stopTime(); m.Node != "" && m.Kubelet && !at.IsZero() && !n.w.now.Before(at) {
			n.faults++
			m.Kubelet, m.Etcd = false, false
			if m.Leader {
				n.w.elect("")
			}
			n.logf("%s stops", m.Name)
		}
	}
}

func (n *node) recordMove(did, who string) {
	if did != "" {
		n.logf("%s %s", who, did)
	}
}

// turnResult is the result of a turn.
type turnResult struct {
	steps   int
	problem string
}

// turn simulates a turn of the runner, on the current facts or on older ones. It ends after the given number of steps,
// or after all of them for -1. A step stores events or performs an action.
func (n *node) turn(steps int, f *remediator.Facts) (did turnResult) {
	fresh := f == nil
	if fresh {
		f = n.observe()
	}
	for range 20 {
		if did.steps == steps {
			return did
		}
		events := remediator.Decide(&n.state, f, n.w.now)
		if len(events) == 0 {
			if wrong := remediator.WrongOutlook(&n.state, f, n.w.now); wrong != "" {
				did.problem = "the outlook is wrong: " + wrong
				return did
			}
			break
		}
		if did.problem = n.checkStarts(f, events); did.problem != "" {
			return did
		}
		for _, e := range events {
			n.logf("%s", recordedEvent{e, n.w.now})
			n.state.Apply(e, n.w.now)
			if n.state.Active != nil {
				n.last = n.state.Clone().Active
			}
		}
		did.steps++
	}
	for _, a := range remediator.Actions(&n.state, f, n.w.now) {
		if did.steps == steps {
			return did
		}
		n.logf("> %s", action(a))
		n.w.owner.Observed = n.w.owner.Observed && a.Type != remediator.Scale
		if err := n.w.perform(f, a); err != nil {
			n.logf("%v", err)
			fresh = false
			break
		}
		did.steps++
	}
	if fresh {
		n.observed(f)
	}
	did.problem = n.checkMarks()
	n.reset()
	return did
}

func (n *node) observe() *remediator.Facts {
	n.w.recorded = remediator.StepObjects(&n.state)
	f := n.w.observe(false)
	if remediator.NeedsEtcdProbe(&n.state, f, n.w.now) {
		f = n.w.observe(true)
	}
	return f
}

// healed ends the faults by making all machines recover.
func (n *node) healed() bool {
	for _, m := range n.w.machines {
		n.heal(m)
	}
	n.lead()
	return true
}

// faultsOver ends the faults and leaves one unhealthy machine as it is. It returns false if there
// is no such machine, or if it cannot be replaced.
func (n *node) faultsOver() bool {
	w := n.w
	if w.owner.Kind == string(remediator.ControlPlane) && (n.desired < 3 || w.owner.ExternalEtcd) {
		return false
	}
	var ill *machine
	for _, m := range w.machines {
		starts := m.Node == "" && !m.NeverJoins
		if w.isHealthy(m) && !w.hasNotice(m) || m.Deleting || starts {
			continue
		}
		if ill != nil {
			return false
		}
		ill = m
	}
	if ill == nil || ill.Node != "" && ill.Kubelet && !ill.Pressed && !w.hasNotice(ill) {
		return false // pods are not observed
	}
	if !w.survivesWithout(ill) || !checkSilentVoters && !ill.Etcd && len(w.machines) != int(n.desired) {
		return false
	}
	n.lead()
	return true
}

func (n *node) lead() {
	if n.w.stacked() && !slices.ContainsFunc(n.w.machines, func(m *machine) bool { return m.Leader }) {
		n.w.elect("")
	}
}

func (n *node) heal(m *machine) {
	m.Pressed, m.NeverJoins, m.Annotations = false, false, nil
	if m.Node != "" {
		m.Kubelet, m.Pods, m.Etcd = true, true, m.Member
	}
}

// edge is a transition from one state to another.
type edge struct {
	to      *node
	problem string
}

// edges returns all possible next transitions. If a name is given, only the transition of that name is logged.
func (n *node) edges(only ...string) []edge {
	var all []edge
	try := func(move string, do func(*node) (bool, string)) {
		c := n.clone()
		if len(only) > 0 && only[0] != move {
			c.logf = func(string, ...any) {}
		}
		if happens, wrong := do(c); happens || wrong != "" {
			c.trail = &trail{n.trail, move}
			c.logf = func(string, ...any) {}
			all = append(all, edge{c, wrong})
		}
	}
	n.tryTurns(try)
	try("the owner acts", func(c *node) (bool, string) {
		did, wrong := c.act()
		c.recordMove(did, "the owner")
		return did != "", wrong
	})
	for i, m := range n.w.machines {
		switch {
		case m.Deleting:
			try(m.Name+" is gone", func(c *node) (bool, string) { return c.w.finishDeletion(c.w.machines[i]), "" })
		case m.Node == "":
			try(m.Name+" joins", func(c *node) (bool, string) { return c.w.join(c.w.machines[i]), "" })
		}
		if !m.Deleting && (m.NeverJoins || m.Node != "" && (!n.w.isHealthy(m) || n.w.hasNotice(m))) {
			try(m.Name+" recovers", func(c *node) (bool, string) { c.heal(c.w.machines[i]); c.lead(); return true, "" })
		}
	}
	try("time passes", func(c *node) (bool, string) { c.advanceTime(5 * time.Minute); return true, "" })
	if a := n.state.Active; a != nil && a.Step == remediator.Cancelling {
		try("half a minute passes", func(c *node) (bool, string) { c.advanceTime(31 * time.Second); return true, "" })
	}
	if n.faultsLeft > 0 {
		n.tryFaults(func(move string, do func(*node)) {
			try(move, func(c *node) (bool, string) {
				c.faultsLeft--
				c.faults++
				do(c)
				return true, ""
			})
		})
	}
	return all
}

// tryTurns tries a complete turn, turns that the death of the process cuts off, and a turn on facts that the owner has
// just outdated.
func (n *node) tryTurns(try func(string, func(*node) (bool, string))) {
	steps := 0
	try("a turn", func(c *node) (bool, string) {
		did := c.turn(-1, nil)
		steps = did.steps
		return did.steps > 0, did.problem
	})
	if n.deaths == 0 {
		return
	}
	for i := 1; i < steps; i++ {
		try(fmt.Sprintf("a turn, cut off after %d of %d steps", i, steps), func(c *node) (bool, string) {
			c.deaths = max(-1, c.deaths-1)
			did := c.turn(i, nil)
			return true, did.problem
		})
	}
	try("a turn on old facts", func(c *node) (bool, string) {
		f := c.observe()
		did, wrong := c.act()
		if did == "" || wrong != "" {
			return false, wrong
		}
		c.recordMove(did, "the owner")
		c.deaths = max(-1, c.deaths-1)
		turn := c.turn(-1, f)
		return turn.steps > 0, turn.problem
	})
}

// tryFaults tries each fault that may happen now.
func (n *node) tryFaults(try func(string, func(*node))) {
	w := n.w
	for i, m := range w.machines {
		if m.Deleting {
			continue
		}
		try("somebody deletes "+m.Name, func(c *node) { c.w.delete(c.w.machines[i]) })
		if m.Node == "" {
			if !m.NeverJoins {
				try(m.Name+" never joins", func(c *node) { c.w.machines[i].NeverJoins = true })
			}
			continue
		}
		if len(w.policy.Checks.Notices) > 0 && m.Annotations == nil {
			try(m.Name+" is about to stop", func(c *node) {
				c.w.machines[i].Annotations = map[string]string{maintenance: w.now.Add(7 * time.Minute).Format(time.RFC3339)}
			})
		}
		if m.Kubelet {
			try("the kubelet of "+m.Name+" dies", func(c *node) { c.w.machines[i].Kubelet = false })
		}
		if m.Kubelet && !m.Pressed {
			try("the node of "+m.Name+" is not ready", func(c *node) { c.w.machines[i].Pressed = true })
		}
		if w.owner.Kind != string(remediator.ControlPlane) {
			continue
		}
		if m.Pods {
			try("pods of "+m.Name+" fail", func(c *node) { c.w.machines[i].Pods = false })
		}
		if m.Etcd {
			try("the etcd of "+m.Name+" dies", func(c *node) {
				c.w.machines[i].Etcd = false
				if c.w.machines[i].Leader {
					c.w.elect("")
				}
			})
		}
	}
	for _, by := range n.steps() {
		try(fmt.Sprintf("people want %d machines", n.desired+by), func(c *node) { c.scaleBy(by) })
	}
	if *w.replicas() != n.desired {
		try("somebody puts replicas back", func(c *node) { *c.w.replicas(), c.reverted = c.desired, true })
	}
}

// steps returns by how many replicas users may scale.
func (n *node) steps() []int32 {
	by := int32(1)
	if n.w.stacked() {
		by = 2
	}
	if n.desired <= by {
		return []int32{by}
	}
	return []int32{by, -by}
}
