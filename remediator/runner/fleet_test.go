package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

// namespaces returns the worlds of n clusters, each with its own namespace and policy and one unhealthy machine.
func namespaces(n int, limits remediator.FleetLimits) *many {
	m := &many{}
	for i := range n {
		w := newWorld(fmt.Sprintf("cluster-%d", i))
		w.facts.Owner.Namespace = fmt.Sprintf("team-%d", i)
		w.facts.Cluster.FailureDomains = []string{"a", "b", "c"}
		for j := range w.facts.Machines {
			w.facts.Machines[j].FailureDomain = w.facts.Cluster.FailureDomains[j]
		}
		w.facts.Fleet = remediator.Fleet{Limits: limits}
		w.failNode(0)
		m.worlds = append(m.worlds, w)
	}
	m.count()
	return m
}

// count counts the machines that policies select.
func (m *many) count() {
	selected, watched := make(remediator.NamespaceCounts), make(map[string]int)
	for _, w := range m.worlds {
		watched[w.facts.Owner.Namespace+"/"+w.facts.Policy.Name] += len(w.facts.Machines)
		for j := range w.facts.Machines {
			selected.Add(remediator.PolicyGroup{Namespace: w.facts.Owner.Namespace, DryRun: w.facts.Policy.DryRun}, w.facts.Machines[j].FailureDomain, 1)
		}
	}
	for _, w := range m.worlds {
		w.facts.Fleet.Selected, w.facts.Fleet.Watched = selected, watched
	}
}

// process returns the runner of a process that reconciles all owners.
func (m *many) process(t *testing.T, name string, l aggregate.Log) *runner.Runner {
	t.Helper()
	view := runner.NewRemediations()
	for _, w := range m.worlds {
		for _, r := range records(t, l, w.facts.Owner.Owner) {
			if err := view.Apply(r); err != nil && !errors.Is(err, eventlog.ErrUnknownType) {
				t.Fatal(err)
			}
		}
	}
	passed, err := l.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: "fleet"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range passed {
		if err := view.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	r := process(t, name, l, m.worlds[0])
	r.View, r.Observer, r.Executor = view, m, m
	return r
}

// turns reconciles all owners at the same moment, distributed over the processes.
func (m *many) turns(ctx context.Context, t *testing.T, processes ...*runner.Runner) {
	t.Helper()
	var group sync.WaitGroup
	for i, w := range m.worlds {
		group.Go(func() {
			if _, err := processes[i%len(processes)].Reconcile(ctx, w.facts.Owner.Owner); err != nil && !errors.Is(err, aggregate.ErrClaimLost) {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// active returns the number of remediations in progress, and the rules that the other owners wait for.
func (m *many) active(t *testing.T, l aggregate.Log) (active int, rules []string) {
	t.Helper()
	for _, w := range m.worlds {
		s := stateOf(t, l, w.facts.Owner.Owner)
		if s.Active != nil {
			active++
			continue
		}
		for _, u := range s.Unhealthy {
			rules = append(rules, u.Decision.Rule)
		}
	}
	slices.Sort(rules)
	return active, slices.Compact(rules)
}

// TestFleetAtOnce checks that a fleet limit holds for owners of different policies that are reconciled at the same
// moment, and after a restart.
func TestFleetAtOnce(t *testing.T) {
	for rule, limits := range map[string]remediator.FleetLimits{
		"fleet-at-once":          {AtOnce: 3},
		"fleet-window":           {PerWindow: 3, Window: time.Hour},
		"failure-domain-at-once": {DomainAtOnce: 3},
	} {
		t.Run(rule, func(t *testing.T) {
			l, fleet := logtest.Open(t), namespaces(12, limits)
			first := fleet.process(t, "first", l)
			fleet.turns(t.Context(), t, first)
			if active, rules := fleet.active(t, l); active != 3 || !slices.Equal(rules, []string{rule}) {
				t.Errorf("%d in progress, want 3; the others wait for %v", active, rules)
			}
			if f := first.Fleet(fleet.worlds[0].facts.Fleet); f.Active["a"] != 3 || f.Unhealthy["a"] != 12 {
				t.Errorf("got %v in progress and %v unhealthy", f.Active, f.Unhealthy)
			}
			second := fleet.process(t, "second", l)
			if f := second.Fleet(fleet.worlds[0].facts.Fleet); f.Active["a"] != 3 || f.Unhealthy["a"] != 12 {
				t.Errorf("after a restart: got %v in progress and %v unhealthy", f.Active, f.Unhealthy)
			}
			slices.Reverse(fleet.worlds) // waiting owners come first
			fleet.turns(t.Context(), t, second)
			if active, _ := fleet.active(t, l); active != 3 {
				t.Errorf("%d in progress after a restart, want 3", active)
			}
		})
	}
}

// TestALimitKeepsEtcdFromBeingAsked checks that etcd is not asked in each turn while only a limit keeps a control plane
// waiting, but is asked before a remediation starts.
func TestALimitKeepsEtcdFromBeingAsked(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(2, remediator.FleetLimits{AtOnce: 1})
	p := fleet.process(t, "one", l)
	for range 3 {
		inOrder(t, p, fleet.worlds)
	}
	first, second := fleet.worlds[0], fleet.worlds[1]
	if first.asked == 0 || second.asked != 0 {
		t.Errorf("etcd was asked %d times for the started remediation and %d times for the waiting one", first.asked, second.asked)
	}
	for range 6 { // until the first machine is replaced
		first.owner()
		inOrder(t, p, fleet.worlds[:1])
	}
	inOrder(t, p, fleet.worlds[1:])
	if s := stateOf(t, l, second.facts.Owner.Owner); s.Active == nil || second.asked == 0 {
		t.Errorf("etcd was asked %d times, and no remediation was started: %+v", second.asked, s.Unhealthy["m1"].Decision)
	}
}

// TestAFailingDomainKeepsEtcdFromBeingAsked checks that while a failure domain fails, which may affect all control
// planes, etcd is not asked for a machine whose replacement would be created there by any method. It is asked if the
// method decides about the failure domain.
func TestAFailingDomainKeepsEtcdFromBeingAsked(t *testing.T) {
	limits := remediator.FleetLimits{DomainMass: remediator.MassFailure{Percent: 50, Floor: 4, Cooldown: time.Minute}}
	l, fleet := logtest.Open(t), namespaces(12, limits)
	p := fleet.process(t, "one", l)
	elsewhere := fleet.worlds[11]
	for i, domain := range []string{"c", "a", "b"} { // the unhealthy machine is not in the failing domain
		elsewhere.facts.Machines[i].FailureDomain = domain
	}
	inOrder(t, p, fleet.worlds)
	inOrder(t, p, fleet.worlds[6:])
	for i, w := range fleet.worlds[6:11] {
		if s := stateOf(t, l, w.facts.Owner.Owner); s.Unhealthy["m1"].Decision.Rule != "failure-domain" || w.asked != 0 {
			t.Errorf("etcd of cluster %d was asked %d times: %+v", 6+i, w.asked, s.Unhealthy["m1"].Decision)
		}
	}
	if elsewhere.asked == 0 {
		t.Error("etcd was not asked although the method decides where the replacement is created")
	}
}

// TestTwoProcessesTogetherKeepTheLimit checks that two processes that both believe to be the leader do not exceed a
// limit together, even if they have read different parts of the log.
func TestTwoProcessesTogetherKeepTheLimit(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(16, remediator.FleetLimits{AtOnce: 3})
	one, two := fleet.process(t, "one", l), fleet.process(t, "two", l)
	for range 2 {
		fleet.turns(t.Context(), t, one, two)
		if active, _ := fleet.active(t, l); active != 3 {
			t.Errorf("%d in progress, want 3", active)
		}
	}
}

// TestAnAdmissionThatCameToNothing checks that the limit holds if a process stops between admitting and starting a
// remediation and resumes after another process has used the limit.
func TestAnAdmissionThatCameToNothing(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(4, remediator.FleetLimits{AtOnce: 1})
	stopped, goOn := make(chan struct{}), make(chan struct{})
	one := fleet.process(t, "one", &halting{Log: l, reached: stopped, resume: goOn})
	late := make(chan error)
	go func() {
		_, err := one.Reconcile(t.Context(), fleet.worlds[0].facts.Owner.Owner)
		late <- err
	}()
	<-stopped
	two := fleet.process(t, "two", l)
	for _, w := range fleet.worlds[1:] {
		if _, err := two.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
	}
	close(goOn)
	if err := <-late; err != nil {
		t.Log("error of the stopped process:", err)
	}
	if active, _ := fleet.active(t, l); active != 1 {
		t.Errorf("%d in progress, want 1", active)
	}
}

// TestProcessesOfOneAppend checks that a remediation starts even if each process dies after one append, because the
// next process does not repeat the step.
func TestProcessesOfOneAppend(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(1, remediator.FleetLimits{AtOnce: 1})
	for life := range 12 {
		if active, _ := fleet.active(t, l); active == 1 {
			return
		}
		p := fleet.process(t, fmt.Sprintf("life-%d", life), &oneAppend{Log: l})
		if _, err := p.Reconcile(t.Context(), fleet.worlds[0].facts.Owner.Owner); err != nil {
			t.Log(err)
		}
	}
	t.Error("no remediation was started by any of the processes")
}

// TestAnUnreadableOwnerStopsOnlyItself checks that an event of a newer version makes only the turns of the owner that
// has it fail. Remediations of that owner still count, and no more are started for it.
func TestAnUnreadableOwnerStopsOnlyItself(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(3, remediator.FleetLimits{AtOnce: 2})
	owner := fleet.worlds[2].facts.Owner.Owner
	if _, err := fleet.process(t, "one", l).Reconcile(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	stored := records(t, l, owner)
	newer, err := stored[0].Events()
	if err != nil {
		t.Fatal(err)
	}
	newer[0].Type = strings.TrimSuffix(newer[0].Type, "v1") + "v99"
	c := eventlog.Commit{Aggregate: stored[0].Aggregate, Expected: stored[len(stored)-1].Seq, Events: newer[:1]}
	c.ID = c.IDFor("daemon/newer")
	if _, err := l.Append(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"two", "three"} {
		p := fleet.process(t, name, l)
		if _, err := p.Reconcile(t.Context(), owner); !errors.Is(err, eventlog.ErrUnknownType) {
			t.Errorf("%s: Reconcile of the unreadable owner = %v", name, err)
		}
		for _, w := range fleet.worlds[:2] {
			if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Errorf("%s: Reconcile = %v", name, err)
			}
		}
		if f := p.Fleet(fleet.worlds[0].facts.Fleet); f.Active["a"] != 2 {
			t.Errorf("%s: %v in progress, want 2 including that of the unreadable owner", name, f.Active)
		}
	}
	if last := records(t, l, owner); len(last) != len(stored)+2 {
		t.Errorf("got %d commits of the owner, want %d and one claim", len(last), len(stored)+1)
	}
}

// addHostile moves the first n worlds to one namespace, whose policy allows everything and never times out.
func (m *many) addHostile(n int, dryRun bool) (rest []*world) {
	for _, w := range m.worlds[:n] {
		p := &w.facts.Policy
		w.facts.Owner.Namespace, p.DryRun = "hostile", dryRun
		p.Limits.AtOnce, p.Limits.PerWindow, p.Limits.MassFailure.Percent, p.Limits.MassFailure.Floor = 10000, 100000, 100, 100000
		p.Timeouts = remediator.Timeouts{ScaleUp: 1e4 * time.Hour, Ready: 1e4 * time.Hour, Removal: 1e4 * time.Hour}
	}
	m.count()
	return m.worlds[n:]
}

// inOrder reconciles owners one after the other.
func inOrder(t *testing.T, p *runner.Runner, worlds []*world) {
	t.Helper()
	for _, w := range worlds {
		if _, err := p.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneNamespaceMakesNoMassFailure checks that one namespace with invented unhealthy machines causes no mass failure
// for others, and that a namespace with invented healthy machines does not hide a mass failure.
func TestOneNamespaceMakesNoMassFailure(t *testing.T) {
	mass := remediator.MassFailure{Percent: 20, Floor: 4, Cooldown: 10 * time.Minute}
	for name, limits := range map[string]remediator.FleetLimits{"fleet": {Mass: mass}, "domain": {DomainMass: mass}} {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s dry run %t", name, dryRun), func(t *testing.T) {
				l, fleet := logtest.Open(t), namespaces(11, limits)
				rest := fleet.addHostile(10, dryRun)
				p := fleet.process(t, "one", l)
				inOrder(t, p, fleet.worlds)
				if s := stateOf(t, l, rest[0].facts.Owner.Owner); s.Active == nil {
					t.Errorf("another namespace blocks the remediation: %+v", s.Unhealthy["m1"].Decision)
				}
				for i := range rest { // the namespace ends its own mass failure, which must not start a cooldown for others
					rest[i].recover(0)
				}
				for _, w := range fleet.worlds[:10] {
					w.recover(0)
				}
				inOrder(t, p, fleet.worlds)
				inOrder(t, p, fleet.worlds)
				rest[0].failNode(1)
				inOrder(t, p, rest)
				if s := stateOf(t, l, rest[0].facts.Owner.Owner); strings.Contains(s.Unhealthy["m2"].Decision.Rule, "cooldown") {
					t.Errorf("the mass failure of another namespace caused a cooldown: %+v", s.Unhealthy["m2"].Decision)
				}
			})
		}
		t.Run(name+" is hidden", func(t *testing.T) {
			l, fleet := logtest.Open(t), namespaces(8, limits)
			for _, w := range fleet.worlds { // a machine of each cluster is about to become unhealthy
				w.now = w.now.Add(-90 * time.Second)
			}
			fleet.worlds[0].facts.Fleet.Selected.Add(remediator.PolicyGroup{Namespace: "hostile"}, "a", 1000)
			p := fleet.process(t, "one", l)
			inOrder(t, p, fleet.worlds)
			for _, w := range fleet.worlds {
				w.now = w.now.Add(90 * time.Second)
			}
			inOrder(t, p, fleet.worlds)
			if active, rules := fleet.active(t, l); active != 0 {
				t.Errorf("%d in progress, want 0; the others wait for %v", active, rules)
			}
		})
	}
}

// oneAppend is the log of a process that dies before its second append.
type oneAppend struct {
	aggregate.Log
	used bool
}

func (m *oneAppend) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if m.used {
		return eventlog.Receipt{}, errors.New("the process is dead")
	}
	m.used = true
	return m.Log.Append(ctx, c)
}

// halting is the log of a process that is stopped before it appends the start of a surge.
type halting struct {
	aggregate.Log
	reached, resume chan struct{}
	once            sync.Once
}

func (h *halting) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if slices.ContainsFunc(c.Events, func(e eventlog.Event) bool { return strings.Contains(e.Type, "surge-requested") }) {
		h.once.Do(func() {
			close(h.reached)
			<-h.resume
		})
	}
	return h.Log.Append(ctx, c)
}

// TestFailureDomainFails checks that no remediation starts in a failing failure domain, whatever the order of owners,
// before and after a restart, and that its cooldown is derived from the log.
func TestFailureDomainFails(t *testing.T) {
	limits := remediator.FleetLimits{DomainMass: remediator.MassFailure{Percent: 50, Floor: 4, Cooldown: time.Hour}}
	l, fleet := logtest.Open(t), namespaces(8, limits)
	failing := func(at time.Duration) { // the timeout of a check is running
		for _, w := range fleet.worlds {
			w.now = w.now.Add(at)
		}
	}
	failing(-90 * time.Second)
	first := fleet.process(t, "first", l)
	fleet.turns(t.Context(), t, first)
	failing(90 * time.Second)
	fleet.turns(t.Context(), t, first)
	if active, rules := fleet.active(t, l); active != 0 || !slices.Equal(rules, []string{"failure-domain"}) {
		t.Fatalf("%d in progress in the failing domain, want 0; the others wait for %v", active, rules)
	}
	for _, w := range fleet.worlds[2:] {
		w.recover(0)
	}
	second := fleet.process(t, "second", l)
	for range 2 { // the first turn removes the annotations
		fleet.turns(t.Context(), t, second)
	}
	if active, rules := fleet.active(t, l); active != 0 || !slices.Contains(rules, "failure-domain-cooldown") {
		t.Errorf("%d in progress after the domain recovered, want 0; the others wait for %v", active, rules)
	}
	third := fleet.process(t, "third", l)
	if f := third.Fleet(fleet.worlds[0].facts.Fleet); f.MassFailuresEnded["a"].IsZero() || f.Unhealthy["a"] != 2 {
		t.Errorf("after a restart: passed = %v, unhealthy = %v", f.MassFailuresEnded, f.Unhealthy)
	}
}

// TestNoMassFailureAfterARestart checks that a few unhealthy machines among many are no mass
// failure for a process that has just started, whichever owners are reconciled first.
func TestNoMassFailureAfterARestart(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(12, remediator.FleetLimits{})
	for _, w := range fleet.worlds {
		w.facts.Owner.Namespace = "fleet"
		w.facts.Policy.Limits = remediator.Limits{AtOnce: 1, PerWindow: 1000, Window: time.Hour, MassFailure: remediator.MassFailure{Percent: 25, Floor: 4, Cooldown: time.Hour}}
	}
	for _, w := range fleet.worlds[6:] {
		w.recover(0)
	}
	fleet.count() // 6 of 36 machines are unhealthy
	inOrder(t, fleet.process(t, "first", l), slices.Concat(fleet.worlds[6:], fleet.worlds[:6]))
	for _, name := range []string{"second", "third"} {
		inOrder(t, fleet.process(t, name, l), fleet.worlds[:6])
	}
	for _, w := range fleet.worlds[:6] {
		if s := stateOf(t, l, w.facts.Owner.Owner); s.Active == nil && s.Unhealthy["m1"].Decision.Rule != "at-once" {
			t.Errorf("%s waits: %+v", w.facts.Owner.Name, s.Unhealthy["m1"].Decision)
		}
	}
}

// TestAStuckRemediationDoesNotUseUpThePolicy checks that a remediation that is stuck for hours, such as in a paused
// cluster, stops blocking other owners of its policy.
func TestAStuckRemediationDoesNotUseUpThePolicy(t *testing.T) {
	l, fleet := logtest.Open(t), namespaces(2, remediator.FleetLimits{})
	for _, w := range fleet.worlds {
		w.facts.Owner.Namespace, w.facts.Policy.Limits.AtOnce = "fleet", 1
	}
	fleet.count()
	p := fleet.process(t, "one", l)
	inOrder(t, p, fleet.worlds)
	fleet.worlds[0].facts.Cluster.Paused = true
	waits := fleet.worlds[1].facts.Owner.Owner
	for _, later := range []time.Duration{remediator.CountsFor - 10*time.Second, 20 * time.Second} {
		if s := stateOf(t, l, waits); s.Active != nil || s.Unhealthy["m1"].Decision.Rule != "at-once" || s.Unhealthy["m1"].Decision.Next == "" {
			t.Fatalf("decision = %+v, want to wait for the limit, with advice", s.Unhealthy["m1"].Decision)
		}
		for _, w := range fleet.worlds {
			w.now = w.now.Add(later)
		}
		inOrder(t, p, fleet.worlds)
	}
	if s := stateOf(t, l, waits); s.Active == nil {
		t.Errorf("no remediation was started: %+v", s.Unhealthy["m1"].Decision)
	}
	if total := p.Totals("fleet", "repair"); total.Active != 2 {
		t.Errorf("got %d remediations in progress, want 2", total.Active)
	}
}

// TestADeletedOwnerCountsInTheWindow checks that remediations of a deleted owner count within their window. Otherwise,
// a user who may delete owners could start remediations without limit.
func TestADeletedOwnerCountsInTheWindow(t *testing.T) {
	for rule, limit := range map[string]func(*world){
		"window":       func(w *world) { w.facts.Policy.Limits.PerWindow = 1 },
		"fleet-window": func(w *world) { w.facts.Fleet.Limits = remediator.FleetLimits{PerWindow: 1, Window: time.Hour} },
	} {
		t.Run(rule, func(t *testing.T) {
			l, fleet := logtest.Open(t), namespaces(2, remediator.FleetLimits{})
			gone, rest := fleet.worlds[0], fleet.worlds[1]
			for _, w := range fleet.worlds {
				w.facts.Owner.Namespace = "fleet"
				limit(w)
			}
			fleet.count()
			p := fleet.process(t, "one", l)
			inOrder(t, p, fleet.worlds[:1])
			gone.facts.Owner.Found, gone.facts.Cluster.Found, gone.facts.Machines, gone.facts.Policy = false, false, nil, remediator.Policy{}
			for range 3 {
				inOrder(t, p, fleet.worlds[:1])
			}
			if s := stateOf(t, l, gone.facts.Owner.Owner); len(s.Starts) != 1 || remediator.HasPending(&s) {
				t.Fatalf("starts = %v, in progress %+v, unhealthy %+v", s.Starts, s.Active, s.Unhealthy)
			}
			inOrder(t, p, fleet.worlds[1:])
			if s := stateOf(t, l, rest.facts.Owner.Owner); s.Active != nil || s.Unhealthy["m1"].Decision.Rule != rule {
				t.Errorf("decision = %+v, want to wait for the limit", s.Unhealthy["m1"].Decision)
			}
			rest.now = rest.now.Add(2 * time.Hour)
			gone.now = rest.now
			inOrder(t, p, fleet.worlds[1:])
			if s := stateOf(t, l, rest.facts.Owner.Owner); s.Active == nil {
				t.Errorf("no remediation was started after the window: %+v", s.Unhealthy["m1"].Decision)
			}
		})
	}
}
