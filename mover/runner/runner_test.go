package runner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDrive(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	request(t, l, "go")
	if err := process("one", l, w).Drive(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(t, l, "go"); s.Phase != mover.PhaseSucceeded {
		t.Errorf("phase = %s, want Succeeded", s.Phase)
	}
	w.check(t, mover.PhaseSucceeded)

	before := len(commitsOf(t, l, "go"))
	if err := process("two", l, w).Drive(t.Context(), "go"); err != nil {
		t.Errorf("Drive of a finished move = %v", err)
	}
	if after := len(commitsOf(t, l, "go")); after != before {
		t.Errorf("Drive of a finished move wrote %d commits", after-before)
	}
}

func TestRequestTwice(t *testing.T) {
	l := logtest.Open(t)
	request(t, l, "go")
	request(t, l, "go")
	other := process("other", l, nil)
	if err := other.Request(t.Context(), "go", "user/another", testSpec()); err != nil {
		t.Error(err)
	}
	if n := len(commitsOf(t, l, "go")); n != 1 {
		t.Errorf("got %d commits, want 1", n)
	}
}

func TestAbortOfAnUnknownMove(t *testing.T) {
	err := process("one", logtest.Open(t), nil).Abort(t.Context(), "nobody", "user/test", "")
	if err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("Abort = %v, want an error with the move's name", err)
	}
}

// TestClaimFences checks that a process appends nothing more after another process claimed the move, however long it
// was blocked in a step.
func TestClaimFences(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	request(t, l, "go")
	asleep, wake := make(chan struct{}), make(chan struct{})
	first := true
	w.before = func(ctx context.Context, step mover.Step) error {
		if step == mover.CreateCopies && first {
			first = false
			close(asleep)
			<-wake
		}
		return ctx.Err()
	}
	lost := make(chan error, 1)
	go func() { lost <- process("older", l, w).Drive(t.Context(), "go") }()
	<-asleep
	if err := process("newer", l, w).Drive(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	close(wake)
	if err := <-lost; !errors.Is(err, aggregate.ErrClaimLost) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("Drive of the older process = %v, want ErrLost with the newer one's name", err)
	}
	claimed := false
	for _, r := range commitsOf(t, l, "go") {
		events, err := r.Events()
		if err != nil {
			t.Fatal(err)
		}
		claimed = claimed || events[0].Actor == "daemon/newer"
		if claimed && events[0].Actor != "daemon/newer" {
			t.Errorf("%s wrote %v after the newer process claimed the move", events[0].Actor, r.Types())
		}
	}
	w.check(t, stateOf(t, l, "go").Phase)
}

// TestAbortDuringAStep checks that an abort stops a long step at its next object.
func TestAbortDuringAStep(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(50)
	request(t, l, "go")
	created := 0
	w.before = func(ctx context.Context, step mover.Step) error {
		if step == mover.CreateCopies {
			if created++; created == 3 {
				return process("operator", l, nil).Abort(ctx, "go", "user/test", "enough")
			}
		}
		return nil
	}
	if err := process("one", l, w).Drive(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, "go")
	if s.Phase != mover.PhaseRolledBack || !strings.Contains(s.RollbackCause, "enough") {
		t.Errorf("phase = %s, rollback cause %q", s.Phase, s.RollbackCause)
	}
	if created > 4 {
		t.Errorf("the step continued for %d objects after the abort", created-3)
	}
	w.check(t, mover.PhaseRolledBack)
}

// TestAbortTooLate checks that an abort after verification, which the controller repeats in each reconciliation, is
// recorded and refused once.
func TestAbortTooLate(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	request(t, l, "go")
	w.before = func(ctx context.Context, step mover.Step) error {
		if step == mover.DeleteSource {
			return process("operator", l, nil).Abort(ctx, "go", "resource/fleet/go", "spec.abort is set")
		}
		return nil
	}
	if err := process("one", l, w).Drive(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	types := typesOf(commitsOf(t, l, "go"))
	for _, name := range []string{"dev.scute.move.abort-requested.v1", "dev.scute.move.abort-refused.v1"} {
		n := 0
		for _, typ := range types {
			if typ == name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("got %d x %s, want 1", n, name)
		}
	}
	w.check(t, mover.PhaseSucceeded)
}

// interferingLog is a log that runs an action just before a chosen commit.
type interferingLog struct {
	aggregate.Log
	at        string // an event type of that commit
	interfere func()
	done      bool
}

func (i *interferingLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if !i.done && slices.ContainsFunc(c.Events, func(e eventlog.Event) bool { return strings.HasPrefix(e.Type, "dev.scute.move."+i.at+".") }) {
		i.done = true
		i.interfere()
	}
	return i.Log.Append(ctx, c)
}

// TestAbortAndDecisionMeet checks that an abort and a decision at the same sequence conflict, although the controller
// and the supervisor share one runner.
func TestAbortAndDecisionMeet(t *testing.T) {
	for _, at := range []string{"claimed", "preflight-passed", "baseline-taken", "paused", "acknowledged", "plan-drafted", "created", "all-created", "verified"} {
		t.Run(at, func(t *testing.T) {
			l, w := logtest.Open(t), newFakeClusters(4)
			request(t, l, "go")
			meet := &interferingLog{Log: l, at: at}
			one := process("one", meet, w)
			meet.interfere = func() {
				if err := one.Abort(t.Context(), "go", "resource/fleet/go", "spec.abort is set"); err != nil {
					t.Error(err)
				}
			}
			err := one.Drive(t.Context(), "go")
			if at == "claimed" && errors.Is(err, eventlog.ErrConflict) {
				err = one.Drive(t.Context(), "go") // the supervisor retries
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := stateOf(t, l, "go"); s.Phase != mover.PhaseRolledBack {
				t.Errorf("phase = %s, want RolledBack", s.Phase)
			}
			w.check(t, mover.PhaseRolledBack)
		})
	}
}

// TestDecisionAndAbortMeet checks that an abort is recorded after a conflict with a decision that was stored first.
func TestDecisionAndAbortMeet(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	request(t, l, "go")
	meet := &interferingLog{Log: l, at: "abort-requested"}
	one := process("one", meet, w)
	meet.interfere = func() {
		ctx, stop := context.WithCancel(t.Context())
		w.before = func(context.Context, mover.Step) error { stop(); return context.Canceled }
		if err := one.Drive(ctx, "go"); !errors.Is(err, context.Canceled) {
			t.Errorf("Drive = %v, want context.Canceled", err)
		}
		w.before = nil
	}
	if err := one.Abort(t.Context(), "go", "resource/fleet/go", ""); err != nil {
		t.Fatal(err)
	}
	if s := stateOf(t, l, "go"); !s.Abort {
		t.Errorf("the abort is not in the log: %v", typesOf(commitsOf(t, l, "go")))
	}
}

// TestLargeDecision checks that a decision that needs several commits is repeated correctly after a crash between them.
func TestLargeDecision(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(3000)
	for i := range w.items[1:] {
		r := &w.items[1+i]
		delete(w.source, r.Ref)
		r.Ref.Name = fmt.Sprintf("%s-%0200d", r.Ref.Name, 0)
		w.source[r.Ref] = true
	}
	request(t, l, "go")
	errStop := errors.New("stop here")
	w.before = func(_ context.Context, step mover.Step) error {
		if step == mover.CreateCopies {
			return errStop
		}
		return nil
	}
	// The first process crashes between two commits of the plan.
	dying := &dyingLog{Log: l, remaining: 1 << 30}
	w.fail = nil
	drafts := &interferingLog{Log: dying, at: "plan-drafted", interfere: func() { dying.remaining = 1 }}
	if err := process("one", drafts, w).Drive(t.Context(), "go"); !errors.Is(err, errDead) {
		t.Fatalf("Drive = %v, want errDead", err)
	}
	if s := stateOf(t, l, "go"); s.Phase != mover.PhasePlanned || len(s.Draft) == 0 || len(s.Draft) == len(w.items) {
		t.Fatalf("phase = %s with %d of %d objects drafted, want some", s.Phase, len(s.Draft), len(w.items))
	}
	if err := process("two", l, w).Drive(t.Context(), "go"); !errors.Is(err, errStop) {
		t.Fatalf("Drive = %v, want errStop", err)
	}
	s := stateOf(t, l, "go")
	if len(s.Plan) != len(w.items) || len(s.Baseline) != len(w.items) || len(s.Acks) != len(w.items) {
		t.Errorf("plan has %d objects, baseline %d, acknowledgements %d, want %d each", len(s.Plan), len(s.Baseline), len(s.Acks), len(w.items))
	}
	if hash, err := mover.PlanHash(s.Plan); err != nil || hash != s.PlanHash {
		t.Errorf("PlanHash differs from the recorded hash (error %v)", err)
	}
}

// TestUnknownEvent checks that an event of an unknown type stops its move, and no other.
func TestUnknownEvent(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	request(t, l, "old")
	request(t, l, "new")
	head := commitsOf(t, l, "new")[0].Seq
	if _, err := l.Append(t.Context(), eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "new"}, ID: "future", Expected: head,
		Events: []eventlog.Event{{Type: "dev.scute.move.teleported.v1", Data: []byte(`{}`)}},
	}); err != nil {
		t.Fatal(err)
	}
	one := process("one", l, w)
	if err := one.Drive(t.Context(), "new"); !errors.Is(err, eventlog.ErrUnknownType) {
		t.Errorf("Drive of a move with an unknown event = %v, want ErrUnknownType", err)
	}
	if n := len(commitsOf(t, l, "new")); n != 2 {
		t.Errorf("%d commits after driving, want 2", n)
	}
	if err := one.Drive(t.Context(), "old"); err != nil {
		t.Errorf("Drive of another move = %v", err)
	}

	moves := runner.NewMoves()
	var aside int
	if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error {
		if err := moves.Apply(r); err != nil {
			aside++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, id := range moves.IDs() {
		if _, due := moves.Due(id); due || aside != 1 {
			t.Errorf("%d commits were set aside, move %s is due: %t", aside, id, due)
		}
	}
	if s, _ := moves.Status("new"); !strings.Contains(s.Message, "stranded") || !strings.Contains(s.Message, "teleported") || s.Next == "" {
		t.Errorf("status of the stranded move: message %q, next %q", s.Message, s.Next)
	}
	if s, _ := moves.Status("old"); s.Phase != mover.PhaseSucceeded || s.LogSequence == 0 || s.MoveID != "old" {
		t.Errorf("status of the other move = %+v", s)
	}
}

// TestTheStatusNamesClustersOfAll checks that the status of a move of all Clusters names them, because the spec does
// not.
func TestTheStatusNamesClustersOfAll(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	spec := testSpec()
	spec.Clusters, spec.All = nil, true
	p := process("one", l, w)
	if err := errors.Join(p.Request(t.Context(), "go", "user/test", spec), p.Drive(t.Context(), "go")); err != nil {
		t.Fatal(err)
	}
	moves := runner.NewMoves()
	if _, err := l.Replay(t.Context(), 0, moves.Apply); err != nil {
		t.Fatal(err)
	}
	if s, _ := moves.Status("go"); s.Phase != mover.PhaseSucceeded || len(s.Clusters) == 0 || len(s.Clusters) != s.Counts.Clusters {
		t.Errorf("phase = %s, Clusters %q of %d", s.Phase, s.Clusters, s.Counts.Clusters)
	}
}

// TestForeignMoveIsLeftAlone checks that a move that began in another management cluster or log is neither due nor
// driven here, and that its status reports where it began.
func TestForeignMoveIsLeftAlone(t *testing.T) {
	for name, here := range map[string]mover.Home{
		"another management cluster": {Cluster: "south", Log: "l"},
		"another log":                {Cluster: "north", Log: "m"},
	} {
		t.Run(name, func(t *testing.T) {
			l, w := logtest.Open(t), newFakeClusters(4)
			began := process("one", l, w)
			began.Home = mover.Home{Cluster: "north", Log: "l"}
			if err := began.Request(t.Context(), "go", "user/test", testSpec()); err != nil {
				t.Fatal(err)
			}
			other := process("two", l, w)
			other.Home = here
			if err := other.Drive(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			moves := runner.NewMoves()
			moves.Home = here
			if _, err := l.Replay(t.Context(), 0, moves.Apply); err != nil {
				t.Fatal(err)
			}
			_, due := moves.Due("go")
			if n := len(commitsOf(t, l, "go")); n != 1 || due {
				t.Errorf("%d commits, due %t: the move was claimed", n, due)
			}
			if s, _ := moves.Status("go"); !s.Stranded || !strings.Contains(s.Message, "started this move") && !strings.Contains(s.Message, "started in event log l") || s.Next == "" {
				t.Errorf("status: message %q, next %q", s.Message, s.Next)
			}
			if err := began.Drive(t.Context(), "go"); err != nil {
				t.Error(err)
			}
			w.check(t, mover.PhaseSucceeded)
		})
	}
}

// TestDecisionsOfAnOperator checks that only a stranded move can be resolved, while any unfinished move accepts that
// its target is abandoned.
func TestDecisionsOfAnOperator(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	one := process("one", l, w)
	request(t, l, "go")
	if err := one.Resolve(t.Context(), "go", "user/test", mover.Back, "no"); !errors.Is(err, runner.ErrNotStranded) {
		t.Errorf("Resolve of a move that is not stranded = %v, want ErrNotStranded", err)
	}
	if err := one.Recover(t.Context(), "lost", "user/test", testSpec(), mover.LogLost{Phase: mover.PhaseDeleting}); err != nil {
		t.Fatal(err)
	}
	if err := one.Resolve(t.Context(), "lost", "user/test", mover.Back, "yes"); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := one.Abandon(t.Context(), "go", "user/test", "gone"); err != nil {
			t.Error(err)
		}
	}
	if s := stateOf(t, l, "go"); !s.Abandon || len(commitsOf(t, l, "go")) != 2 {
		t.Errorf("Abandon = %t, %d commits, want 2", s.Abandon, len(commitsOf(t, l, "go")))
	}
}
