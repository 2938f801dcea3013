package remediator_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// TestAnyFaults plays an owner of one to nine machines with random faults: components, etcd members and kubelets fail
// and recover, new machines never join, users delete machines, change replicas, roll out, pause, move and change
// policies, operators use all their commands, facts are stale, and the process dies between any two steps. The
// invariants always hold, and once the faults end, the desired state is reached.
func TestAnyFaults(t *testing.T) {
	seen := make(map[string]int)
	wanted := []string{
		"SurgeRequested RolloutSurge", "SurgeRequested RolloutSurge relaxed", "SurgeRequested Surge", "SurgeRequested Surge relaxed", "HandedOver",
		"SurgeConsumed", "CancelStarted", "Succeeded", "Cancelled Recovered", "Cancelled OwnerGone", "Frozen", "Thawed", "EscalationStarted", "ReplacementObserved extra",
		"DefragmentationStarted", "DefragmentationEnded Done", "DefragmentationEnded Failed", "DefragmentationEnded TimedOut", "NoSpaceDisarmed",
		"PolicyMassFailurePassed", "MassFailurePassed",
	}
	missing := func(kind string) bool { return seen[kind] == 0 }
	for round := 0; round < 100 && slices.ContainsFunc(wanted, missing) && !t.Failed(); round++ {
		rapid.Check(t, func(t *rapid.T) {
			repeatSeed(t, round)
			p := newPlayer(t, anyWorld(t, startTime()))
			p.seen = seen
			for range rapid.IntRange(20, 80).Draw(t, "turns") {
				p.applyChange()
				p.turn(true)
			}
			p.settle()
		})
	}
	if i := slices.IndexFunc(wanted, missing); i >= 0 {
		t.Errorf("no run reached %s: change the player so that it can", wanted[i])
	}
	t.Log(seen)
}

// repeatSeed draws different cases from the same seed in each round.
func repeatSeed(t *rapid.T, round int) {
	for range round {
		rapid.Uint64().Draw(t, "round")
	}
}

// TestSeveralWorkers plays random faults with workers only, several of which may be replaced at once.
func TestSeveralWorkers(t *testing.T) {
	most := 0
	for round := 0; round < 100 && most < 3 && !t.Failed(); round++ {
		rapid.Check(t, func(t *rapid.T) {
			repeatSeed(t, round)
			p := newPlayer(t, anyWorldOf(t, startTime(), remediator.Deployment, remediator.Deployment, remediator.Set))
			p.w.policy.Limits.WorkersAtOnce, p.w.policy.Limits.AtOnce = rapid.IntRange(2, 4).Draw(t, "workers at once"), 10
			for range rapid.IntRange(20, 80).Draw(t, "turns") {
				for range rapid.SampledFrom([]int{0, 0, 0, 1, 4}).Draw(t, "at once") {
					if len(p.w.machines) > 0 {
						p.breakMachine(rapid.SampledFrom(p.w.machines).Draw(t, "machine"))
					}
				}
				p.applyChange()
				p.turn(true)
				most = max(most, len(p.state.InProgress()))
			}
			p.settle()
		})
	}
	if most < 3 && !t.Failed() {
		t.Errorf("at most %d workers were replaced at once, want 3: change the player so that it can", most)
	}
}

// TestSlowOwners plays random faults with control planes whose reconciles take long: a machine's delete annotation may
// be gone by the time they delete it.
func TestSlowOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorldOf(t, startTime(), remediator.ControlPlane)
		w.slow = 25 * time.Second
		p := newPlayer(t, w)
		for range rapid.IntRange(20, 80).Draw(t, "turns") {
			p.applyChange()
			p.turn(true)
		}
		if w.slow = 0; w.chosen != nil {
			p.act()
		}
		p.settle()
	})
}

// The player checks these properties. A property is false while the remediator has a known defect.
const (
	checkReplicaMismatch   = true  // an unhealthy machine is replaced although its owner has not reached its replicas
	checkLearners          = true  // also if the machine is only a learner of etcd
	checkSilentVoters      = true  // also if its etcd does not answer, so that no new machine can join
	checkRollouts          = false // also in the middle of a rollout
	checkExternalPairs     = true  // also in a control plane with external etcd
	checkStaleHealthChecks = true  // the condition of a deleted MachineHealthCheck replaces nothing
	checkNotes             = true  // the control plane's remediation annotation does not outlive the remediation
	checkDeletions         = true  // a MachineDeployment that does not delete outdated machines keeps them
	checkMidwayScaling     = true  // users may also scale in the middle of a remediation
	checkSingleMark        = true  // no delete annotation remains when the next remediation begins
	checkLateStatus        = true  // a control plane that observes the certificates' trigger late deletes no healthy machine
)

type player struct {
	guard
	t       *rapid.T
	catalog *eventlog.Catalog[remediator.Event]
	log     []entry
	story   []string
	seen    map[string]int
}

// startTime returns the time at which each simulation begins.
func startTime() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 5e8, time.UTC) }

func newPlayer(t *rapid.T, w *world) *player {
	p := &player{t: t, catalog: remediator.NewCatalog()}
	p.w = w
	p.desired = p.w.owner.Replicas
	p.w.policy.Attempts, p.w.policy.Limits.PerWindow, p.w.policy.Limits.Cooldown = 100, 1000, time.Minute
	if rapid.Bool().Draw(t, "no rollout surge") {
		p.w.policy.Methods[v1alpha1.MethodRolloutSurge] = false
	}
	if rapid.Bool().Draw(t, "notices") {
		p.w.policy.Checks.Notices = []remediator.Notice{{Type: v1alpha1.NoticeMachineAnnotation, Key: maintenance, Timed: true, Lead: 10 * time.Minute}}
	}
	p.store(remediator.Registered{Owner: p.w.owner.Owner}, remediator.Claimed{Holder: "one"})
	p.logf("%s with %d machines: topology %t, trigger %t, tested %t, external etcd %t, maxSurge %d, accepts %t, at once %d, OnDelete %t, sealed %t, health check %t, methods %v", p.w.owner.Kind, p.desired,
		p.w.cluster.Topology, p.w.owner.CertificateTrigger, p.w.owner.Tested, p.w.owner.ExternalEtcd, p.w.owner.MaxSurge, p.w.policy.AllowsDeleteFirst, p.w.policy.Limits.WorkersAtOnce, p.w.onDelete, p.w.onlyKubelets, p.w.healthCheck, p.w.policy.Methods)
	return p
}

func (p *player) logf(format string, args ...any) {
	p.story = append(p.story, p.w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (p *player) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(p.story, "\n"))
}

// Fatal lets the player be passed to stored.
func (p *player) Fatal(args ...any) { p.fail("%s", fmt.Sprint(args...)) }

// store encodes, decodes and applies events, and checks the invariants of each.
func (p *player) store(events ...remediator.Event) {
	p.t.Helper()
	for _, e := range events {
		p.logf("  %s", formatEvent(e, p.w.now))
		p.count(e)
		again := stored(p, p.catalog, e)
		p.log = append(p.log, entry{again, p.w.now})
		p.state.Apply(again, p.w.now)
		if p.state.Active != nil {
			p.last = p.state.Clone().Active
		}
		if n := len(p.state.InProgress()); remediator.IsStart(e) && n > max(1, p.w.policy.Limits.WorkersAtOnce) {
			p.fail("%d remediations are in progress", n)
		}
	}
}

func (p *player) count(e remediator.Event) {
	if p.seen == nil {
		return
	}
	name := reflect.TypeOf(e).Name()
	switch e := e.(type) {
	case remediator.SurgeRequested:
		name += " " + string(e.Method)
		if e.Relaxed {
			name += " relaxed"
		}
	case remediator.DefragmentationEnded:
		name += " " + string(e.Outcome)
	case remediator.ReplacementObserved:
		if e.Extra {
			name += " extra"
		}
	case remediator.Cancelled:
		name += " " + string(e.Cause)
	}
	p.seen[name]++
}

// turn simulates Turn of the runner: it reads the facts, decides, and performs actions. With faults, it may be
// interrupted anywhere or use stale facts.
func (p *player) turn(faults bool) {
	p.t.Helper()
	one := func(label string, n int) bool { return faults && rapid.IntRange(0, n).Draw(p.t, label) == 0 }
	unasked := one("unasked", 20)
	f := p.observe(unasked)
	if one("stale", 5) {
		p.act()
	}
	for range 20 {
		events := p.decide(f)
		if len(events) == 0 {
			break
		}
		if wrong := p.checkStarts(f, events); wrong != "" {
			p.fail("%s", wrong)
		}
		p.store(events...)
		if one("dies after an append", 8) {
			p.restart()
			return
		}
	}
	if events := p.decide(f); len(events) > 0 {
		p.fail("it never stops deciding: %+v", events)
	}
	if wrong := remediator.WrongOutlook(&p.state, f, p.w.now); wrong != "" {
		p.fail("the outlook is wrong: %s", wrong)
	}
	for _, a := range remediator.Actions(&p.state, f, p.w.now) {
		if one("dies before a write", 12) {
			p.restart()
			return
		}
		if one("the owner is quick", 10) {
			p.act()
		}
		p.logf("  > %s", action(a))
		if m := p.w.machine(a.Machine.Name); f.Policy.DryRun && p.state.Active == nil && m != nil && m.UnhealthyAnnotation == "" && (a.Type == remediator.SetUnhealthy || a.Type == remediator.CreateRequest) {
			p.fail("a mark in a dry run")
		}
		p.w.owner.Observed = p.w.owner.Observed && a.Type != remediator.Scale // until its controller acts
		if err := p.w.perform(f, a); err != nil {
			if !errors.Is(err, errForeign) {
				p.fail("%v", err)
			}
			p.logf("  %v", err)
			p.store(remediator.TransientFailure{Message: err.Error()})
			return
		}
	}
	if !unasked {
		p.observed(f)
	}
	if !faults {
		p.checkIdempotent()
	}
	if wrong := p.checkMarks(); checkSingleMark && wrong != "" {
		p.fail("%s", wrong)
	}
	p.reset()
}

// act performs one reconcile of the owner.
func (p *player) act() {
	p.t.Helper()
	p.w.owner.Deleting = p.w.owner.Deleting || p.w.cluster.Deleting
	p.w.delaysDeletion = p.w.slow > 0 && rapid.Bool().Draw(p.t, "slow")
	did, wrong := p.guard.act()
	if did != "" {
		p.logf("the owner %s", did)
	}
	if wrong != "" {
		p.fail("%s", wrong)
	}
}

// checkIdempotent checks that performed actions are not requested again.
func (p *player) checkIdempotent() {
	p.t.Helper()
	f := p.observe(false)
	if len(p.decide(f)) > 0 {
		return
	}
	for _, a := range remediator.Actions(&p.state, f, p.w.now) {
		if err := p.w.perform(f, a); err != nil {
			return
		}
	}
	if again := remediator.Actions(&p.state, p.observe(false), p.w.now); len(again) > 0 {
		p.fail("done, and still to be done: %+v", again)
	}
}

func (p *player) restart() {
	p.logf("  the process dies")
	p.w.maintenance = remediator.MaintenanceFacts{}
	p.store(remediator.Claimed{Holder: fmt.Sprintf("holder-%d", len(p.log))})
	var again remediator.State
	for _, e := range p.log {
		again.Apply(e.event, e.at)
	}
	if diff := difference(p.state.Clone(), again.Clone()); diff != "" {
		p.fail("a replay gives another state: %s", diff)
	}
}

func (p *player) observe(unasked bool) *remediator.Facts {
	p.w.recorded = remediator.StepObjects(&p.state)
	f := p.w.observe(false)
	if remediator.NeedsEtcdProbe(&p.state, f, p.w.now) && !unasked {
		reach := p.w.cluster.Reachable
		f = p.w.observe(true)
		f.Cluster.Reachable = reach
	}
	return f
}

// decide decides twice, to check that the result is the same and that the state does not change.
func (p *player) decide(f *remediator.Facts) []remediator.Event {
	p.t.Helper()
	before := p.state.Clone()
	events := remediator.Decide(&p.state, f, p.w.now)
	if diff := difference(before, p.state.Clone()); diff != "" {
		p.fail("a decision changes the state: %s", diff)
	}
	if again := remediator.Decide(before, f, p.w.now); !reflect.DeepEqual(events, again) {
		p.fail("the same facts, decided otherwise: %s", cmp.Diff(events, again))
	}
	return events
}

// difference returns the difference of two states, or "". It calls reflect.DeepEqual first, which is faster when they
// are equal.
func difference(a, b *remediator.State) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b)
}
