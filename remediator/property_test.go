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
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestAnyFaults plays an owner of one to nine machines, to which all may happen that can: components, etcd members and
// kubelets fail and recover, newcomers never join, people delete machines, change replicas and roll out, operators say all
// they can say, facts are stale, and the process dies between any two steps. It holds to what must never be so, and in the
// end, when the faults are over, all must be as it was.
func TestAnyFaults(t *testing.T) {
	seen := make(map[string]int)
	wanted := []string{
		"SurgeRequested RolloutSurge", "SurgeRequested RolloutSurge relaxed", "SurgeRequested Surge", "SurgeRequested Surge relaxed", "HandedOver",
		"SurgeConsumed", "CancelStarted", "Succeeded", "Cancelled", "Frozen", "Thawed", "EscalationStarted", "ReplacementObserved extra",
	}
	missing := func(kind string) bool { return seen[kind] == 0 }
	for rounds := 0; rounds < 10 && slices.ContainsFunc(wanted, missing) && !t.Failed(); rounds++ {
		rapid.Check(t, func(t *rapid.T) {
			p := newPlayer(t)
			p.seen = seen
			for range rapid.IntRange(20, 80).Draw(t, "turns") {
				p.happen()
				p.turn(true)
			}
			p.settle()
		})
	}
	if i := slices.IndexFunc(wanted, missing); i >= 0 {
		t.Errorf("no run came to %s: the player does not get there", wanted[i])
	}
	t.Log(seen)
}

type player struct {
	t       *rapid.T
	w       *world
	state   remediator.State
	catalog *eventlog.Catalog[remediator.Event]
	log     []entry
	story   []string
	seen    map[string]int

	wish    int32 // what people want
	meddled bool  // people have the owner in hand: it deletes machines for them
	faults  int   // so far
	begun   int   // faults when the last remediation was begun
	last    *remediator.Active
}

func newPlayer(t *rapid.T) *player {
	p := &player{t: t, w: anyWorld(t, time.Date(2026, 5, 1, 12, 0, 0, 5e8, time.UTC)), catalog: remediator.NewCatalog()}
	p.wish = p.w.owner.Replicas
	p.w.policy.Attempts, p.w.policy.Limits.PerWindow, p.w.policy.Limits.Cooldown = 100, 1000, time.Minute
	if rapid.Bool().Draw(t, "no rollout surge") {
		p.w.policy.Methods[v1alpha1.MethodRolloutSurge] = false
	}
	p.store(remediator.Registered{Owner: p.w.owner.Owner}, remediator.Claimed{Holder: "one"})
	p.tell("%s with %d machines: topology %t, lever %t, tested %t, external etcd %t, maxSurge %d, accepts %t, methods %v", p.w.owner.Kind, p.wish,
		p.w.cluster.Topology, p.w.owner.CertificateLever, p.w.owner.Tested, p.w.owner.ExternalEtcd, p.w.owner.MaxSurge, p.w.policy.Accepts, p.w.policy.Methods)
	return p
}

func (p *player) tell(format string, args ...any) {
	p.story = append(p.story, p.w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

func (p *player) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(p.story, "\n"))
}

// Fatal lets the player stand for a test.
func (p *player) Fatal(args ...any) { p.fail("%s", fmt.Sprint(args...)) }

// store applies events out of their stored form, and holds to what must be so of each.
func (p *player) store(events ...remediator.Event) {
	p.t.Helper()
	for _, e := range events {
		p.tell("  %s", telling(e, p.w.now))
		p.count(e)
		again := stored(p, p.catalog, e)
		p.log = append(p.log, entry{again, p.w.now})
		p.state.Apply(again, p.w.now)
		if p.state.Active != nil {
			p.last = p.state.Clone().Active
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
	case remediator.ReplacementObserved:
		if e.Extra {
			name += " extra"
		}
	}
	p.seen[name]++
}

// turn is a Turn of the runner: looks, facts, writes. With faults it may be cut off anywhere, or see an old world.
func (p *player) turn(faults bool) {
	p.t.Helper()
	one := func(label string, n int) bool { return faults && rapid.IntRange(0, n).Draw(p.t, label) == 0 }
	f := p.look(one("unasked", 20))
	if one("stale", 5) {
		p.act()
	}
	for range 20 {
		events := p.decide(f)
		if len(events) == 0 {
			break
		}
		p.check(f, events)
		p.store(events...)
		if one("dies after an append", 8) {
			p.die()
			return
		}
	}
	if events := p.decide(f); len(events) > 0 {
		p.fail("it never stops deciding: %+v", events)
	}
	for _, a := range remediator.Actions(&p.state, f) {
		if one("dies before a write", 12) {
			p.die()
			return
		}
		if one("the owner is quick", 10) {
			p.act()
		}
		p.tell("  > %s", action(a))
		p.w.owner.Observed = p.w.owner.Observed && a.Do != remediator.Scale // until its controller acts
		if err := p.w.perform(a); err != nil {
			if !errors.Is(err, errForeign) {
				p.fail("%v", err)
			}
			p.tell("  %v", err)
			p.store(remediator.Setback{Message: err.Error()})
			return
		}
	}
	if !faults {
		p.idempotent()
	}
}

// idempotent: what was done is not done again.
func (p *player) idempotent() {
	p.t.Helper()
	f := p.look(false)
	if len(p.decide(f)) > 0 {
		return
	}
	for _, a := range remediator.Actions(&p.state, f) {
		if err := p.w.perform(a); err != nil {
			return
		}
	}
	if again := remediator.Actions(&p.state, p.look(false)); len(again) > 0 {
		p.fail("done, and still to be done: %+v", again)
	}
}

func (p *player) die() {
	p.tell("  the process dies")
	p.store(remediator.Claimed{Holder: fmt.Sprintf("holder-%d", len(p.log))})
	var again remediator.State
	for _, e := range p.log {
		again.Apply(e.event, e.at)
	}
	if diff := cmp.Diff(p.state.Clone(), again.Clone()); diff != "" {
		p.fail("a replay gives another state: %s", diff)
	}
}

func (p *player) look(unasked bool) *remediator.Facts {
	f := p.w.look(false)
	if remediator.Asks(&p.state, f) && !unasked {
		reach := p.w.cluster.Reach
		f = p.w.look(true)
		f.Cluster.Reach = reach
	}
	return f
}

// decide decides twice, the second time with all in another order.
func (p *player) decide(f *remediator.Facts) []remediator.Event {
	p.t.Helper()
	before := p.state.Clone()
	events := remediator.Decide(&p.state, f, p.w.now)
	if diff := cmp.Diff(before, p.state.Clone()); diff != "" {
		p.fail("a decision changes the state: %s", diff)
	}
	if again := remediator.Decide(before, f, p.w.now); !reflect.DeepEqual(events, again) {
		p.fail("the same facts, decided otherwise: %s", cmp.Diff(events, again))
	}
	return events
}

// check holds what is about to be begun to the arithmetic of quorum, in its own words.
// blocked: a machine keeps a rollout from its next step, as far as can be seen.
func blocked(f *remediator.Facts, victim remediator.Subject) bool {
	i := slices.IndexFunc(f.Machines, func(m remediator.Machine) bool { return m.UID == victim.UID })
	if i < 0 {
		return false
	}
	m := f.Machines[i]
	names := components
	if f.Owner.ExternalEtcd {
		names = components[:3]
	} else if f.Etcd == nil || !slices.ContainsFunc(f.Etcd.Members, func(e remediator.Member) bool { return e.Node == m.Node && e.Answers == object.True }) {
		return true
	}
	return m.Node == "" || slices.ContainsFunc(names, func(name string) bool { return m.Conditions[name].Status != object.True })
}

func (p *player) check(f *remediator.Facts, events []remediator.Event) {
	p.t.Helper()
	for _, e := range events {
		var victim remediator.Subject
		var adds, removes int
		switch e := e.(type) {
		case remediator.SurgeRequested:
			victim, adds = e.Machine, 1
			if e.Relaxed && len(f.Machines) < 3 {
				p.fail("a relaxed surge of %d machines", len(f.Machines))
			}
			if p.w.owner.MaxSurge == 0 && e.Method == remediator.RolloutSurge {
				p.fail("a rollout surge where maxSurge is 0")
			}
		case remediator.HandedOver:
			victim, removes = e.Machine, 1
		default:
			continue
		}
		p.begun = p.faults
		patient := p.state.Patients[victim.UID]
		if patient == nil || patient.Mark == nil || patient.Mark.State != remediator.Unhealthy {
			p.fail("%s is not unhealthy", victim.Name)
		}
		stuck := removes > 0 && blocked(f, victim)
		if f.Owner.RollingOut != "" && !stuck || f.Owner.Paused || f.Cluster.Paused || f.Move != "" || len(f.Policy.Paused) > 0 || f.Policy.Unreadable != "" {
			p.fail("begun while somebody else has the owner in hand")
		}
		if m := p.w.machine(victim.Name); m != nil && (m.Skip || m.Paused) {
			p.fail("begun for a machine that is skipped")
		}
		if !p.w.stacked() {
			continue
		}
		if f.Etcd == nil || f.Etcd.Err != "" || f.Cluster.Reach != object.True {
			p.fail("begun blindly")
		}
		voters, answer, own := 0, 0, 0
		for _, m := range f.Etcd.Members {
			if m.Learner {
				continue
			}
			voters++
			if m.Answers == object.True {
				answer++
			}
			if i := slices.IndexFunc(f.Machines, func(x remediator.Machine) bool { return x.UID == victim.UID }); i >= 0 && m.Node == f.Machines[i].Node {
				own = 1
				if m.Answers == object.True {
					answer -= removes
				}
			}
		}
		voters -= removes * own
		if voters+adds <= 2 && adds == 1 && answer == voters {
			continue // 1->2: the only way
		}
		if left := voters + adds; answer < left/2+1 {
			p.fail("%T of %s: %d of %d voters would answer", e, victim.Name, answer, left)
		}
	}
}

// act lets the owner reconcile, and judges what it deletes.
func (p *player) act() {
	p.t.Helper()
	quorum := p.w.quorum()
	baseline := make(map[types.UID]bool)
	if p.last != nil {
		for _, m := range p.last.Request.Baseline {
			baseline[m.UID] = true
		}
	}
	did, m := p.w.act()
	if did == "" {
		return
	}
	p.tell("the owner %s", did)
	if m == nil || p.meddled {
		return
	}
	if !p.w.stacked() || !m.Member {
		quorum = false
	}
	if quorum && p.faults == p.begun {
		voters, dead := p.w.voters()
		answer := voters - dead
		if m.Etcd {
			answer--
		}
		if voters > 1 && answer < (voters-1)/2+1 {
			p.fail("quorum goes with %s", m.Name)
		}
	}
	a := p.state.Active
	m.Deleting = false
	alive := p.w.well(m)
	m.Deleting = true
	switch {
	case !alive, !baseline[m.UID] && (a != nil || m.DeleteMark == remediator.DeleteValue):
	case a == nil:
		p.fail("%s was well, and nothing is under way", m.Name)
	case a.Victim.UID != m.UID:
		p.fail("%s was well, and is not the victim", m.Name)
	case a.Step == remediator.Sparing && m.DeleteMark == "" && m.Certificates == a.Request.Original && m.Template == m.ClonedFrom:
		p.fail("%s had been spared", m.Name)
	}
}

// happen lets things happen.
func (p *player) happen() {
	p.t.Helper()
	w := p.w
	w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 1, 1, 10, 10, 30, 60, 301, 301, 1300}).Draw(p.t, "seconds")) * time.Second)
	for range rapid.IntRange(0, 3).Draw(p.t, "things") {
		if len(w.machines) == 0 {
			return
		}
		m := rapid.SampledFrom(w.machines).Draw(p.t, "machine")
		switch n := rapid.IntRange(0, 99).Draw(p.t, "thing"); {
		case n < 30:
			p.act()
		case n < 50:
			p.progress()
		case n < 67:
			p.hurt(m)
		case n < 78:
			p.heal(m)
		case n < 81:
			m.Doomed = m.Node == ""
			p.tell("%s never joins: %t", m.Name, m.Doomed)
		case n < 83 && !m.Deleting:
			p.faults++
			p.tell("somebody %s", w.delete(m))
		case n < 89 && m.Request != nil:
			p.operator(m)
		case n < 91:
			m.Skip = p.seldom("skip")
			p.tell("skip %s: %t", m.Name, m.Skip)
		case n < 92:
			m.Remediate = !m.Remediate && p.seldom("remediate")
			p.tell("remediate %s: %t", m.Name, m.Remediate)
		case n < 93:
			if w.policy.Paused = nil; p.seldom("paused") {
				w.policy.Paused = []string{"a freeze"}
			}
			p.tell("policy paused %v", w.policy.Paused)
		case n < 94:
			w.owner.Paused = p.seldom("paused")
			p.tell("owner paused: %t", w.owner.Paused)
		case n < 95:
			p.revert()
		case n < 96:
			w.policy.Name, w.policy.Unreadable = "default", ""
			if p.seldom("unselected") {
				w.policy.Name = ""
			} else if p.seldom("unreadable") {
				w.policy.Unreadable = "spec.hold is a list"
			}
			p.tell("policy %q, unreadable: %q", w.policy.Name, w.policy.Unreadable)
		case n < 97:
			if w.cluster.Reach = object.True; p.seldom("out of reach") {
				w.cluster.Reach = object.False
			}
			p.tell("reach: %s", w.cluster.Reach)
		case n < 98:
			if w.etcdErr = ""; p.seldom("etcd error") {
				w.etcdErr = "no endpoint answers"
			}
			p.tell("etcd error: %q", w.etcdErr)
		case n < 99 && rapid.IntRange(0, 3).Draw(p.t, "rollout") == 0:
			p.meddled = true
			w.target += "+"
			p.tell("a rollout to %s", w.target)
		}
	}
}

func (p *player) seldom(label string) bool { return rapid.IntRange(0, 2).Draw(p.t, label) == 0 }

// hurt one of a minority, most of the time.
func (p *player) hurt(m *machine) {
	sick := 0
	for _, m := range p.w.machines {
		if !p.w.well(m) {
			sick++
		}
	}
	if sick > 0 && (sick+1)*2 > len(p.w.machines) && rapid.IntRange(0, 5).Draw(p.t, "majority") > 0 {
		return
	}
	p.faults++
	switch rapid.IntRange(0, 6).Draw(p.t, "fault") {
	case 0, 1:
		m.Kubelet = false
	case 2:
		m.Pods = false
	case 3, 4:
		m.Pressed = true
	case 5:
		m.Etcd = false
		if m.Leader {
			p.w.elect("")
		}
	case 6:
		m.Unaskable = true
	}
	p.tell("%s: kubelet %t, components %t, etcd %t, askable %t, pressed %t", m.Name, m.Kubelet, m.Pods, m.Etcd, !m.Unaskable, m.Pressed)
}

func (p *player) heal(m *machine) {
	m.Pressed, m.Unaskable, m.Doomed = false, false, false
	if m.Node != "" {
		m.Kubelet, m.Pods, m.Etcd = true, true, m.Member
	}
	p.tell("%s is well", m.Name)
}

// progress is what machines do by themselves: they join, they go.
func (p *player) progress() {
	for _, m := range slices.Clone(p.w.machines) {
		switch {
		case m.Deleting && p.w.gone(m):
			p.tell("%s is gone", m.Name)
		case m.Node == "" && p.w.join(m):
			p.tell("%s joins", m.Name)
		}
	}
}

func (p *player) operator(m *machine) {
	switch rapid.IntRange(0, 3).Draw(p.t, "word") {
	case 0:
		m.Request.Hold, m.Request.HoldUntil = true, time.Time{}
		if rapid.Bool().Draw(p.t, "until") {
			m.Request.HoldUntil = p.w.now.Add(5 * time.Minute)
		}
	case 1:
		m.Request.Hold = false
	case 2:
		m.Request.Abort = true
	case 3:
		m.Request.Abort = false
	}
	p.tell("an operator on %s: %+v", m.Name, *m.Request)
}

// revert is GitOps: replicas are what they were.
func (p *player) revert() {
	replicas := &p.w.owner.Replicas
	if p.w.cluster.Topology {
		replicas = &p.w.cluster.TopologyReplicas
	}
	if *replicas != p.wish {
		p.meddled = true
		*replicas = p.wish
		p.tell("replicas are put back to %d", p.wish)
	}
}

// settle ends all faults, and waits for all to be as it was.
func (p *player) settle() {
	p.t.Helper()
	w := p.w
	p.tell("--- the faults are over")
	// One may stay dead, or never join, for good: then it is to be replaced.
	dead := rapid.IntRange(0, 2).Draw(p.t, "one stays dead") == 0 && p.wish >= 3 && w.owner.Kind == string(remediator.ControlPlane) && w.owner.MaxSurge > 0 && len(w.machines) >= int(p.wish) && !w.anyDeleting() &&
		!slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Template != w.target })
	for _, m := range w.machines {
		if !dead || w.well(m) || m.Deleting {
			p.heal(m)
		} else {
			dead, m.Kubelet = false, false
			p.tell("%s stays dead: joined %t, etcd %t", m.Name, m.Node != "", m.Etcd)
		}
		m.Unaskable, m.Skip, m.Remediate = false, false, false
		if m.Request != nil {
			m.Request.Hold, m.Request.Abort = false, false
		}
	}
	if !w.quorum() {
		for _, m := range w.machines {
			p.heal(m) // of a lost quorum nobody recovers
		}
	}
	w.policy.Unreadable = ""
	w.policy.Name, w.policy.Paused, w.owner.Paused, w.cluster.Reach, w.etcdErr = "default", nil, false, object.True, ""
	if w.stacked() && !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.Leader }) {
		w.elect("")
	}
	quiet := 0
	for range 150 {
		if len(w.machines) == 0 {
			return // people deleted all of them
		}
		before := len(p.log)
		p.release()
		p.turn(false)
		p.act()
		p.turn(false)
		p.progress()
		p.turn(false)
		w.now = w.now.Add(time.Minute)
		if before == len(p.log) && p.unsettled() == "" {
			quiet++
		} else {
			quiet = 0
		}
		if quiet == 3 {
			return
		}
	}
	p.fail("it does not settle: %s", p.unsettled())
}

// release is what an operator is told to do about a remediation that is frozen because somebody else set the replicas: abort
// it. Afterwards the machine may be replaced again.
func (p *player) release() {
	a := p.state.Active
	for _, m := range p.w.machines {
		if m.Request != nil {
			m.Request.Abort = a != nil && a.Victim.UID == m.UID && a.Frozen == "foreign-replicas"
		}
	}
}

// unsettled says what is not as it was, "" for nothing.
func (p *player) unsettled() string {
	w := p.w
	switch {
	case p.state.Active != nil:
		return "a remediation is under way: " + string(p.state.Active.Step)
	case w.owner.Replicas != p.wish || w.cluster.Topology && w.cluster.TopologyReplicas != p.wish:
		return fmt.Sprintf("%d replicas are asked for, and %d are wanted", w.owner.Replicas, p.wish)
	case len(w.machines) != int(p.wish):
		return fmt.Sprintf("there are %d machines", len(w.machines))
	case w.owner.Relaxed != "" || w.owner.Touched != "":
		return fmt.Sprintf("the owner bears %q %q", w.owner.Relaxed, w.owner.Touched)
	}
	for _, m := range w.machines {
		switch {
		case !w.well(m):
			return m.Name + " is not well"
		case m.Mark != "" || m.DeleteMark != "" || m.Certificates != "" || m.ClonedFrom != m.Template || m.Request != nil:
			return fmt.Sprintf("%s bears mark %q, delete %q, certificates %q, cloned from %q, request %v", m.Name, m.Mark, m.DeleteMark, m.Certificates, m.ClonedFrom, m.Request)
		case w.is(m, "HealthCheckSucceeded", object.False) || w.is(m, "OwnerRemediated", object.False):
			return m.Name + " bears conditions of a remediation"
		}
	}
	for _, patient := range p.state.Patients {
		if patient.Mark != nil || patient.Rung != "" {
			return patient.Name + " is a patient"
		}
	}
	return ""
}
