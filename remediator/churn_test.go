package remediator_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"scute.dev/remediator"
)

// churn changes the conditions of a remediation: limits, policies, failure domains and foreign MachineHealthChecks. It
// can also delete the owner or its Cluster, and have a MachineSet release a worker.
func (p *player) churn(m *machine) {
	w := p.w
	number := func(label string, of ...int) int { return rapid.SampledFrom(of).Draw(p.t, label) }
	switch rapid.IntRange(0, 9).Draw(p.t, "what changes") {
	case 0, 1:
		w.fleet = anyFleet(p.t, w)
	case 2:
		w.policy.Limits.AtOnce, w.policy.Limits.PerWindow = number("at once", 1, 2, 10), number("per window", 1, 3, 1000)
		if w.owner.Kind != string(remediator.ControlPlane) {
			w.policy.Limits.WorkersAtOnce = number("workers at once", 0, 1, 2, 4)
		}
		w.ledger = remediator.Ledger{Active: number("active", 0, 0, 1, 3), Watched: 10, Unhealthy: number("unhealthy", 0, 0, 0, 8)}
	case 3:
		w.policy.DryRun = p.oneInThree("dry run")
	case 4, 5:
		p.switchPolicy()
	case 6:
		w.cluster.FailureDomains = rapid.SampledFrom([][]string{nil, {"a"}, {"b", "c"}, {"a", "b", "c"}, {"a", "b", "c", "d"}}).Draw(p.t, "failure domains")
	case 7:
		p.toggleForeignRemediation(m)
	case 8:
		if rapid.IntRange(0, 9).Draw(p.t, "is deleted") == 0 && w.owner.Kind != "OtherControlPlane" && !w.owner.Deleting && !w.cluster.Deleting {
			w.cluster.Deleting = rapid.Bool().Draw(p.t, "with its cluster")
			w.owner.Deleting = !w.cluster.Deleting
		}
	case 9:
		if w.owner.Kind == string(remediator.Set) && p.oneInThree("released") {
			w.machines = slices.DeleteFunc(w.machines, func(other *machine) bool { return other == m })
			p.faults++
			p.logf("%s is released", m.Name)
		}
	}
	p.logf("now: fleet %+v, limits %+v, ledger %+v, dry run %t, policy %s, checks %v, failure domains %v, owner deleting %t, cluster deleting %t; %s unwired %q", w.fleet, w.policy.Limits,
		w.ledger, w.policy.DryRun, w.policy.Name, w.policy.Checks, w.cluster.FailureDomains, w.owner.Deleting, w.cluster.Deleting, m.Name, m.OtherHealthCheck)
}

// anyFleet returns random fleet limits and a random usage of them by other owners.
func anyFleet(t *rapid.T, w *world) remediator.Fleet {
	number := func(label string, of ...int) int { return rapid.SampledFrom(of).Draw(t, label) }
	mass := func(label string) remediator.MassFailure {
		return remediator.MassFailure{Percent: number(label, 0, 0, 50), Floor: 2, Cooldown: 5 * time.Minute}
	}
	count := func(label string, of ...int) map[string]int {
		return map[string]int{"": number(label, of...), "a": number(label, of...), "b": number(label, of...)}
	}
	f := remediator.Fleet{Machines: count("machines", 4, 10), Unhealthy: count("unhealthy", 0, 0, 0, 3), Active: count("active", 0, 0, 0, 1)}
	f.Starts = slices.Repeat([]time.Time{w.now}, number("begun", 0, 0, 2))
	f.Limits = remediator.FleetLimits{
		Paused: w.fleet.Limits.Paused, AtOnce: number("fleet at once", 0, 1, 3), PerWindow: number("fleet per window", 0, 2, 5), Window: time.Hour, DomainAtOnce: number("domain at once", 0, 1, 2),
		Mass: mass("mass"), DomainMass: mass("domain mass"),
	}
	if rapid.IntRange(0, 5).Draw(t, "unreadable limits") == 0 {
		f.Limits = remediator.FleetLimits{Unreadable: "spec.atOnce is a string"}
	}
	return f
}

// switchPolicy changes the policy that selects the owner, its timeouts, and its escalation steps.
func (p *player) switchPolicy() {
	w := p.w
	w.policy.Name, w.policy.UID, w.policy.Unreadable = "default", "policy", ""
	if rapid.Bool().Draw(p.t, "another policy") {
		w.policy.Name, w.policy.UID = "another", "another"
	}
	minutes := time.Duration(rapid.SampledFrom([]int{1, 5, 20}).Draw(p.t, "minutes")) * time.Minute
	checks := slices.Clone(w.policy.Checks.Node)
	for i := range checks {
		checks[i].Timeout = minutes
	}
	w.policy.Checks.Node, w.policy.Checks.NodeStartup = checks, 2*minutes
	w.policy.Escalation = nil
	if p.oneInThree("another escalation") {
		w.policy.Escalation = []remediator.EscalationStep{{Name: rapid.SampledFrom([]string{"reboot", "reset"}).Draw(p.t, "step"), Timeout: minutes, APIVersion: "example.com/v1", Kind: "Another"}}
	}
}

// toggleForeignRemediation lets a MachineHealthCheck that scute does not manage remediate a failing
// machine, or removes that MachineHealthCheck.
func (p *player) toggleForeignRemediation(m *machine) {
	w := p.w
	if m.OtherHealthCheck != "" {
		p.removeForeignCheck(m)
		return
	}
	if w.healthCheck {
		return
	}
	if m.OtherHealthCheck = "theirs"; w.failsCheck(m) && !m.Deleting && !m.Skip && !m.Paused {
		p.faults++
		p.foreignDeletion = true
		w.set(m, "HealthCheckSucceeded", "False", "UnhealthyNode")
		w.set(m, "OwnerRemediated", "False", "WaitingForRemediation")
	}
}

// removeForeignCheck removes the foreign MachineHealthCheck, which has set the machine's condition to healthy before.
func (p *player) removeForeignCheck(m *machine) {
	if m.OtherHealthCheck == "" {
		return
	}
	if m.OtherHealthCheck = ""; !m.Deleting && p.w.conditionIs(m, "HealthCheckSucceeded", "False") && m.Conditions["HealthCheckSucceeded"].Reason == "UnhealthyNode" {
		m.removeCondition("OwnerRemediated")
		p.w.set(m, "HealthCheckSucceeded", "True", "HealthCheckSucceeded")
	}
}

// stopChurn reverts everything that churn changed, except deletions.
func (p *player) stopChurn() {
	w := p.w
	w.fleet, w.ledger, w.policy.DryRun = remediator.Fleet{}, remediator.Ledger{}, false
	w.policy.Limits.AtOnce, w.policy.Limits.PerWindow = 10, 1000
	w.policy.Checks.Node, w.policy.Checks.NodeStartup = newWorld(w.now).policy.Checks.Node, newWorld(w.now).policy.Checks.NodeStartup
	w.cluster.FailureDomains = []string{"a", "b", "c"}
	for _, m := range w.machines {
		p.removeForeignCheck(m)
	}
}

// deleteOwner checks that deleting the owner and its machines ends every remediation, and that
// nothing of scute remains.
func (p *player) deleteOwner() {
	w := p.w
	for range 100 {
		p.turn(false)
		p.act()
		p.turn(false)
		p.progress()
		w.now = w.now.Add(time.Minute)
	}
	p.turn(false)
	switch {
	case len(w.machines) > 0:
		p.fail("%d machines of an owner that is gone are there", len(w.machines))
	case w.owner.Found:
		p.fail("the owner is there")
	case remediator.HasPending(&p.state):
		p.fail("the owner is gone, and something is due: %s", p.unsettledReason())
	case w.cluster.Topology && w.owner.Kind != string(remediator.Set) && w.cluster.Found && // no topology has a MachineSet
		w.cluster.TopologyReplicas != p.desired && !p.raced:
		p.fail("the topology asks for %d replicas, and %d are wanted", w.cluster.TopologyReplicas, p.desired)
	}
}

// actDeleted deletes all machines of a deleted owner. The machines of a control plane do not leave etcd first.
func (w *world) actDeleted() string {
	did := ""
	for _, m := range w.machines {
		if !m.Deleting {
			did += " " + w.delete(m)
		}
	}
	if len(w.machines) == 0 {
		w.owner.Found = false
		w.cluster.Found = w.cluster.Found && !w.cluster.Deleting
	}
	return did
}

// refusal returns the reason why limits, policies or users forbid starting a remediation, or "".
func (g *guard) refusal(f *remediator.Facts, victim remediator.Subject) string {
	l, fleet, now := f.Policy.Limits, f.Fleet, g.w.now
	busy := len(g.state.InProgress())
	m := g.w.machine(victim.Name)
	begun := 0
	for _, at := range g.state.Starts {
		if now.Sub(at) < time.Hour {
			begun++
		}
	}
	u := g.state.Unhealthy[victim.UID]
	continues := u != nil && u.Attempts == 0 && len(u.CompletedSteps) > u.EarlierSteps
	elsewhere := remediator.Total(fleet.Active)
	switch {
	case f.Policy.DryRun:
		return "it is a dry run"
	case f.Owner.Deleting || f.Cluster.Deleting:
		return "the owner is being deleted"
	case m != nil && m.OtherHealthCheck != "":
		return "a MachineHealthCheck of somebody else remediates it"
	case fleet.Limits.Unreadable != "":
		return "the limits of the fleet are not known"
	case len(fleet.Limits.Paused) > 0:
		return "the fleet is paused"
	case busy > 0 && busy+f.Ledger.Active >= l.AtOnce, f.Ledger.Active >= l.AtOnce:
		return fmt.Sprintf("%d are in progress, and %d elsewhere, of %d of the policy", busy, f.Ledger.Active, l.AtOnce)
	case fleet.Limits.AtOnce > 0 && busy+elsewhere >= fleet.Limits.AtOnce:
		return fmt.Sprintf("%d are in progress, and %d elsewhere, of %d of the fleet", busy, elsewhere, fleet.Limits.AtOnce)
	case !continues && begun >= l.PerWindow:
		return fmt.Sprintf("%d were begun, of %d of the policy", begun, l.PerWindow)
	case !continues && fleet.Limits.PerWindow > 0 && begun+len(fleet.Starts) >= fleet.Limits.PerWindow && slices.ContainsFunc(fleet.Starts, func(at time.Time) bool { return !at.After(now) && now.Sub(at) < time.Hour }):
		return fmt.Sprintf("%d were begun, and %d elsewhere, of %d of the fleet", begun, len(fleet.Starts), fleet.Limits.PerWindow)
	case f.Ledger.Unhealthy >= 4 && f.Ledger.Unhealthy*5 >= f.Ledger.Watched:
		return "the policy has a mass failure"
	}
	return ""
}
