package runner_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/remediator"
	"scute.dev/remediator/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAtRestNothingIsWrittenOrAsked(t *testing.T) {
	l, w := logtest.Open(t), newWorld("rest")
	r := process(t, "one", &counting{Log: l}, w)
	for range 3 {
		again, err := r.Reconcile(t.Context(), w.facts.Owner.Owner)
		if err != nil || again != 0 {
			t.Fatalf("next turn in %s, error %v", again, err)
		}
	}
	if log := r.Log.(*counting); log.appends+log.reads > 0 {
		t.Errorf("got %d appends and %d reads for a healthy owner, want none", log.appends, log.reads)
	}
}

// unchanged is a world of which only the facts from before are observed.
type unchanged struct {
	*world
	seen *remediator.Facts
}

func (u unchanged) Observe(context.Context, remediator.Owner, remediator.CreatedObjects) (*remediator.Facts, error) {
	return u.seen, nil
}

// TestATurnRecordsAllThatFollows checks that another turn on the same facts records nothing, at each step of a
// replacement. So an event of this process needs no other turn.
func TestATurnRecordsAllThatFollows(t *testing.T) {
	l, w := logtest.Open(t), newWorld("follows")
	w.failNode(1)
	log := &counting{Log: l}
	r := process(t, "one", log, w)
	for turns := 0; len(stateOf(t, l, w.facts.Owner.Owner).History) == 0; turns++ {
		seen, err := w.Observe(t.Context(), w.facts.Owner.Owner, nil)
		if err != nil || turns > 40 {
			t.Fatalf("%d turns, error %v", turns, err)
		}
		for _, r.Observer = range []runner.Observer{w, unchanged{w, seen}} {
			before := log.appends
			if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
			if n := log.appends - before; r.Observer != runner.Observer(w) && n > 0 {
				list := records(t, l, w.facts.Owner.Owner)
				t.Errorf("turn %d again: got %d appends, want none: %v", turns, n, list[len(list)-1].Types())
			}
		}
		w.owner()
	}
	w.replaced(t, "m2")
}

// TestAWriteThatNoWatchReports checks that a turn that has recorded something and changed an infrastructure machine is
// soon followed by another one.
func TestAWriteThatNoWatchReports(t *testing.T) {
	l, w := logtest.Open(t), newWorld("unwatched")
	w.failNode(1)
	r := process(t, "one", l, w)
	for i := range 2 {
		if again, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil || (again == time.Second) != (i == 0) {
			t.Errorf("turn %d: next turn in %s, error %v", i, again, err)
		}
	}
}

type counting struct {
	aggregate.Log
	appends, reads int
}

func (c *counting) Append(ctx context.Context, commit eventlog.Commit) (eventlog.Receipt, error) {
	c.appends++
	return c.Log.Append(ctx, commit)
}

func (c *counting) Read(ctx context.Context, a eventlog.Aggregate, after uint64) ([]eventlog.Record, error) {
	if after > 0 {
		c.reads++
	}
	return c.Log.Read(ctx, a, after)
}

// TestAnAnswerOfEtcdWillDoForAWhile checks that during a surge, in which each change of a machine causes a turn, an
// answer of etcd is reused for some seconds, but that etcd is always asked before a remediation starts.
func TestAnAnswerOfEtcdWillDoForAWhile(t *testing.T) {
	l, w := logtest.Open(t), newWorld("asks")
	w.failNode(1)
	r := process(t, "one", l, w)
	turn := func(want int) {
		t.Helper()
		before := w.asked
		if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
			t.Fatal(err)
		}
		if n := w.asked - before; n != want {
			t.Errorf("etcd was asked %d times, want %d", n, want)
		}
	}
	turn(1) // before the start
	w.now = w.now.Add(time.Second)
	turn(0)
	w.now = w.now.Add(5 * time.Second)
	turn(1)
	w.failNode(2) // two minutes later
	turn(1)
	for range 3 {
		w.owner() // until the first machine is replaced
		turn(1)
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); len(s.History) != 1 || s.Active == nil || s.Active.Victim.Name != "m3" {
		t.Errorf("got %d ended remediations, active %+v", len(s.History), s.Active)
	}
}

// TestAWriteThatIsRefused checks that a refused write does not block the writes for other machines.
func TestAWriteThatIsRefused(t *testing.T) {
	l, w := logtest.Open(t), newWorld("refused")
	w.facts.Policy.Hold = time.Hour
	w.failNode(0)
	w.failNode(1)
	w.before = func(a remediator.Action) error {
		if a.Type == remediator.CreateRequest && a.Machine.Name == "m1" {
			return errRefused
		}
		return nil
	}
	again, err := process(t, "one", l, w).Reconcile(t.Context(), w.facts.Owner.Owner)
	if err != nil || again == 0 || again > time.Second {
		t.Errorf("next turn in %s, error %v", again, err)
	}
	for i, requested := range []bool{false, true} {
		if m := w.facts.Machines[i]; m.UnhealthyAnnotation == "" || (m.Request != nil) != requested {
			t.Errorf("%s: annotation %q, request %v, want a request: %t", m.Name, m.UnhealthyAnnotation, m.Request, requested)
		}
	}
}

var errDead = errors.New("the process is dead")

// dyingLog is the log of a process that dies at one of its appends, either before the append is sent or after it was
// stored.
type dyingLog struct {
	aggregate.Log
	remaining int
	stored    bool
}

func (m *dyingLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if m.remaining <= 0 {
		if m.remaining == 0 && m.stored {
			if _, err := m.Log.Append(ctx, c); err != nil {
				return eventlog.Receipt{}, err
			}
		}
		m.remaining = -1
		return eventlog.Receipt{}, errDead
	}
	m.remaining--
	return m.Log.Append(ctx, c)
}

// TestDeathAtEveryAppend checks that a remediation is completed by another process if the first one dies at any of its
// appends.
func TestDeathAtEveryAppend(t *testing.T) {
	l := logtest.Open(t)
	for _, stored := range []bool{false, true} {
		for n := 0; ; n++ {
			w := newWorld(fmt.Sprintf("append-%t-%d", stored, n))
			w.failNode(1)
			dying := &dyingLog{Log: l, remaining: n, stored: stored}
			err := runUntilDone(t, process(t, "mortal", dying, w), l, w)
			if err == nil {
				t.Logf("stored=%t: killed at each of %d appends", stored, n)
				w.replaced(t, "m2")
				break
			}
			if dying.remaining >= 0 {
				t.Fatalf("append %d: Reconcile = %v", n, err)
			}
			if err := runUntilDone(t, process(t, "heir", l, w), l, w); err != nil {
				t.Fatalf("after a death at append %d: %v", n, err)
			}
			w.replaced(t, "m2")
			caused(t, l, w.facts.Owner.Owner)
		}
	}
}

// TestDeathAtEveryWrite checks that a remediation is completed by another process if the first one dies at any write.
// The error of a write only ends the turn.
func TestDeathAtEveryWrite(t *testing.T) {
	l := logtest.Open(t)
	for n := 0; ; n++ {
		w := newWorld(fmt.Sprintf("write-%d", n))
		w.failNode(1)
		left, died := n, false
		w.before = func(remediator.Action) error {
			if left--; left < 0 {
				died = true
				return errDead
			}
			return nil
		}
		for range 40 {
			if _, err := process(t, "mortal", l, w).Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
			if died || len(stateOf(t, l, w.facts.Owner.Owner).History) > 0 {
				break
			}
			w.owner()
		}
		w.before = nil
		if err := runUntilDone(t, process(t, "heir", l, w), l, w); err != nil {
			t.Fatalf("after a death at write %d: %v", n, err)
		}
		w.replaced(t, "m2")
		caused(t, l, w.facts.Owner.Owner)
		if !died {
			t.Logf("killed at each of %d writes", n)
			return
		}
	}
}

// TestNoNewsIsNotRecorded checks that repeated failures are recorded once, even if their messages contain changing
// numbers, and that a cluster that answers every other time does not freeze its remediation.
func TestNoNewsIsNotRecorded(t *testing.T) {
	l, w := logtest.Open(t), newWorld("noise")
	w.failNode(1)
	r, tries := process(t, "one", l, w), 0
	w.before = func(a remediator.Action) error {
		if a.Type != remediator.SetClonedFrom {
			return nil
		}
		tries++
		return fmt.Errorf("read tcp 10.0.0.1:%d: connection reset by peer", 40000+tries) //nolint:err113 // as the network says it
	}
	said := func(looks int, blinking bool) map[string]int {
		for range looks {
			if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(time.Second)
			w.unreachable = blinking && !w.unreachable
		}
		said := make(map[string]int)
		for _, record := range records(t, l, w.facts.Owner.Owner) {
			events, err := record.Events()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				said[e.Type]++
			}
		}
		return said
	}
	const transient, frozen = "dev.scute.remediation.transient-failure.v1", "dev.scute.remediation.frozen.v1"
	if got := said(10, false); got[transient] != 1 || tries < 10 {
		t.Errorf("after %d failed writes: events %v", tries, got)
	}
	if got := said(10, true); got[frozen] != 0 {
		t.Errorf("cluster that answers every other time: events %v", got)
	}
	w.unreachable = true
	said(1, false)
	w.now, w.unreachable = w.now.Add(time.Minute), true
	if got := said(1, false); got[frozen] != 1 {
		t.Errorf("cluster that was unreachable for a minute: events %v", got)
	}
}

// unanswered stores commits, and answers the first one with an error.
type unanswered struct {
	aggregate.Log
	done bool
}

func (u *unanswered) Append(ctx context.Context, commit eventlog.Commit) (eventlog.Receipt, error) {
	receipt, err := u.Log.Append(ctx, commit)
	if err == nil && !u.done {
		u.done = true
		return eventlog.Receipt{}, eventlog.ErrUnavailable
	}
	return receipt, err
}

// TestACommitWithoutAnAnswer checks that the turn after a failed append knows what the log stored nevertheless, even if
// the view does not have it yet: the process's own commits cause no turn.
func TestACommitWithoutAnAnswer(t *testing.T) {
	l, w := logtest.Open(t), newWorld("unanswered")
	w.failNode(1)
	r := process(t, "one", &unanswered{Log: l}, w)
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Fatalf("Reconcile = %v, want ErrUnavailable", err)
	}
	w.recover(1)
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(t, l, w.facts.Owner.Owner); len(s.Unhealthy) == 0 || remediator.HasPending(&s) {
		t.Errorf("the log has %d machines, and pending = %t; want the mark cleared", len(s.Unhealthy), remediator.HasPending(&s))
	}
}

// TestClaimFences checks that a former leader appends and writes nothing.
func TestClaimFences(t *testing.T) {
	l, w := logtest.Open(t), newWorld("fence")
	w.failNode(1)
	older := process(t, "older", l, w)
	if _, err := older.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	w.owner()
	newer := process(t, "newer", l, w)
	if _, err := newer.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	written := false
	w.before = func(remediator.Action) error { written = true; return nil }
	w.owner()
	if _, err := older.Reconcile(t.Context(), w.facts.Owner.Owner); !errors.Is(err, aggregate.ErrClaimLost) {
		t.Errorf("Reconcile of the older process = %v, want ErrLost", err)
	}
	if written {
		t.Error("the older process performed an action")
	}
}

// TestAtOnce checks that the limit of a policy holds for owners that are reconciled at the same time.
func TestAtOnce(t *testing.T) {
	l := logtest.Open(t)
	worlds := make([]*world, 6)
	for i := range worlds {
		worlds[i] = newWorld(fmt.Sprintf("cluster-%d", i))
		worlds[i].failNode(0)
	}
	r := process(t, "one", l, worlds[0])
	fleet := &many{worlds: worlds}
	r.Observer, r.Executor = fleet, fleet
	done := make(chan error)
	for _, w := range worlds {
		go func() {
			_, err := r.Reconcile(t.Context(), w.facts.Owner.Owner)
			done <- err
		}()
	}
	for range worlds {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	active := 0
	for _, w := range worlds {
		if s := stateOf(t, l, w.facts.Owner.Owner); s.Active != nil {
			active++
		} else if u := s.Unhealthy["m1"]; u == nil || u.Decision.Rule != "at-once" {
			t.Errorf("%s: got %+v, want to wait for at-once", w.facts.Owner.Name, u)
		}
	}
	if active != 2 {
		t.Errorf("%d in progress, want 2", active)
	}
	if totals := r.Totals("fleet", "repair"); totals.Active != 2 || totals.Unhealthy != 6 || totals.Machines != 18 {
		t.Errorf("totals = %+v", totals)
	}
}

type many struct{ worlds []*world }

func (m *many) worldOf(owner remediator.Owner) *world {
	for _, w := range m.worlds {
		if w.facts.Owner.UID == owner.UID {
			return w
		}
	}
	return nil
}

func (m *many) Observe(ctx context.Context, owner remediator.Owner, made remediator.CreatedObjects) (*remediator.Facts, error) {
	return m.worldOf(owner).Observe(ctx, owner, made)
}

func (m *many) Probe(ctx context.Context, f *remediator.Facts) (*remediator.Facts, error) {
	return m.worldOf(f.Owner.Owner).Probe(ctx, f)
}

func (m *many) Perform(ctx context.Context, f *remediator.Facts, a remediator.Action) error {
	return m.worldOf(f.Owner.Owner).Perform(ctx, f, a)
}

// TestAMoveThatCameFirstIsSeenBeforeTheFirstWrite checks that a move that was requested before the remediation, but
// that the turn had not seen, takes precedence: nothing is written, and the remediation continues after the move.
func TestAMoveThatCameFirstIsSeenBeforeTheFirstWrite(t *testing.T) {
	l, w := logtest.Open(t), newWorld("race")
	w.failNode(1)
	r := process(t, "one", l, w)
	moving := true
	r.MoveOf = func(_ context.Context, seq uint64, namespace, cluster string) (string, error) {
		if seq > 0 && moving && namespace == "fleet" && cluster == "race" { // the view is outdated unless it is waited for
			return "fleet/go/1", nil
		}
		return "", nil
	}
	written := 0
	w.before = func(remediator.Action) error { written++; return nil }
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, w.facts.Owner.Owner)
	if written > 0 || s.Active == nil || s.Active.Frozen != "move" {
		t.Errorf("got %d writes, active %+v", written, s.Active)
	}
	moving = false
	if err := runUntilDone(t, r, l, w); err != nil {
		t.Fatal(err)
	}
	w.replaced(t, "m2")
}

// TestALogThatIsBehindKeepsFromWriting checks that nothing is written while it is unknown whether the cluster is being
// moved.
func TestALogThatIsBehindKeepsFromWriting(t *testing.T) {
	l, w := logtest.Open(t), newWorld("behind")
	w.failNode(1)
	r := process(t, "one", l, w)
	r.MoveOf = func(_ context.Context, seq uint64, _, _ string) (string, error) {
		if seq > 0 {
			return "", errDead
		}
		return "", nil
	}
	w.before = func(remediator.Action) error { t.Error("an action was performed"); return nil }
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); !errors.Is(err, errDead) {
		t.Error(err)
	}
}

// TestBegun checks that the view lists the machines with a remediation in progress.
func TestBegun(t *testing.T) {
	l, w := logtest.Open(t), newWorld("begun")
	begun := func() []runner.Ongoing { return process(t, "reader", l, w).View.Ongoing() }
	w.failNode(1)
	w.facts.Policy.DryRun = true
	r := process(t, "one", l, w)
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil || len(begun()) > 0 {
		t.Errorf("Reconcile = %v; Begun in a dry run = %+v, want none", err, begun())
	}
	w.facts.Policy.DryRun = false
	if _, err := r.Reconcile(t.Context(), w.facts.Owner.Owner); err != nil {
		t.Fatal(err)
	}
	if list := begun(); len(list) != 1 || list[0].Owner != w.facts.Owner.Owner || len(list[0].Machines) != 1 || list[0].Machines[0].Machine.Name != "m2" || list[0].Machines[0].Message == "" {
		t.Errorf("Begun = %+v", list)
	}
	if err := runUntilDone(t, r, l, w); err != nil || len(begun()) > 0 {
		t.Errorf("drive = %v; Begun at the end = %+v, want none", err, begun())
	}
}
