package runner_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// drive runs a supervisor on the log as the daemon does: a view that follows the log wakes it. stop ends both and waits
// for them.
func drive(t *testing.T, l *eventlog.Log, r *runner.Runner, limit int) (moves *runner.Moves, stop func()) {
	t.Helper()
	r.Slots = fair.NewSlots(limit)
	moves = runner.NewMoves()
	supervisor := r.Supervisor(moves)
	moves.Changed = supervisor.Changed
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = l.Follow(ctx, 0, func(record eventlog.Record) error {
			_ = moves.Apply(record)
			return nil
		})
	})
	wg.Go(func() { supervisor.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return moves, stop
}

// eventually waits until a condition is true; the timeout is only for failed tests.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestSupervisorDrivesAll(t *testing.T) {
	const n, limit = 6, 2
	l := logtest.Open(t)
	var mu sync.Mutex
	worlds, busy, most := make(map[string]*fakeClusters), 0, 0
	for i := range n {
		id := fmt.Sprintf("fleet/go-%d", i)
		w := newFakeClusters(3)
		w.before = func(_ context.Context, step mover.Step) error {
			mu.Lock()
			defer mu.Unlock()
			switch step {
			case mover.RunPreflight:
				busy++
				most = max(most, busy)
			case mover.AwaitResume:
				busy--
			}
			return nil
		}
		worlds[id] = w
	}
	r := process("one", l, nil)
	r.Performer = func(id string) runner.Performer { return worlds[id] }
	moves, _ := drive(t, l, r, limit)
	for id := range worlds {
		request(t, l, id)
	}
	eventually(t, "all moves at their end", func() bool {
		done := 0
		for id := range worlds {
			if s, ok := moves.Status(id); ok && s.FinishedAt != nil {
				done++
			}
		}
		return done == n
	})
	for id, w := range worlds {
		if s, _ := moves.Status(id); s.Phase != mover.PhaseSucceeded {
			t.Errorf("phase of %s = %s, want Succeeded", id, s.Phase)
		}
		w.check(t, mover.PhaseSucceeded)
	}
	if most > limit {
		t.Errorf("%d moves ran at once, the limit is %d", most, limit)
	}
}

// TestMovesThatOnlyWaitHoldNoPlace checks that moves that wait, or whose target is unreachable, do not block other
// moves, even in the same namespace.
func TestMovesThatOnlyWaitHoldNoPlace(t *testing.T) {
	l := logtest.Open(t)
	worlds := make(map[string]*fakeClusters)
	for i := range 4 {
		w := newFakeClusters(3)
		w.unreachable = true
		worlds[fmt.Sprintf("fleet/a-%d", i)] = w
	}
	silent := newFakeClusters(3)
	silent.unresponsive = true
	worlds["fleet/b"], worlds["fleet/z"] = silent, newFakeClusters(3)
	r := process("one", l, nil)
	r.Performer = func(id string) runner.Performer { return worlds[id] }
	moves, _ := drive(t, l, r, 1)
	for id := range worlds {
		if id != "fleet/z" {
			request(t, l, id)
			eventually(t, id+" past its preflight", func() bool { s, _ := moves.Status(id); return s.Phase != "" && s.Phase != mover.PhasePreflight })
		}
	}
	request(t, l, "fleet/z")
	eventually(t, "the move that waits for nothing at its end", func() bool { s, _ := moves.Status("fleet/z"); return s.Phase == mover.PhaseSucceeded })
	for id, w := range worlds {
		w.locked(func() { w.unreachable, w.unresponsive = false, false })
		eventually(t, id+" at its end", func() bool { s, _ := moves.Status(id); return s.Phase == mover.PhaseSucceeded })
		w.check(t, mover.PhaseSucceeded)
	}
}

// TestMovesWithoutAPlaceAreThrottled checks that a move reports that it waits for a worker, until it has one.
func TestMovesWithoutAPlaceAreThrottled(t *testing.T) {
	l := logtest.Open(t)
	worlds := map[string]*fakeClusters{"fleet/a": newFakeClusters(3), "fleet/b": newFakeClusters(3)}
	inStep, leave := make(chan struct{}), make(chan struct{})
	worlds["fleet/a"].before = func(ctx context.Context, step mover.Step) error {
		if step != mover.RunPreflight {
			return nil
		}
		close(inStep)
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r := process("one", l, nil)
	r.Performer = func(id string) runner.Performer { return worlds[id] }
	moves, _ := drive(t, l, r, 1)
	request(t, l, "fleet/a")
	<-inStep
	request(t, l, "fleet/b")
	eventually(t, "the second waits for a place", func() bool { return r.Throttled("fleet/b").Reason == supervise.NoFreePlace })
	close(leave)
	for id := range worlds {
		eventually(t, id+" at its end", func() bool { s, _ := moves.Status(id); return s.Phase == mover.PhaseSucceeded })
	}
	if why := r.Throttled("fleet/b"); why != (supervise.Throttled{}) {
		t.Errorf("a finished move is throttled: %+v", why)
	}
}

// TestAnAbortWakesAMoveInBackoff checks that a user's decision wakes a move that waits for its next attempt. In this
// test no time passes.
func TestAnAbortWakesAMoveInBackoff(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(3)
	w.fail = map[mover.Step]mover.StepFailed{mover.CreateCopies: {Message: "the target does not answer"}}
	r := process("one", l, w)
	r.After = func(time.Duration) <-chan time.Time { return nil }
	moves, _ := drive(t, l, r, 1)
	request(t, l, "go")
	eventually(t, "the move waits", func() (made bool) {
		w.locked(func() { made = slices.Contains(w.steps, mover.CreateCopies) })
		return made
	})
	if err := process("user", l, nil).Abort(t.Context(), "go", "user/test", "seen enough"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rollback", func() bool { s, _ := moves.Status("go"); return s.Phase == mover.PhaseRolledBack })
	w.check(t, mover.PhaseRolledBack)
}

// TestAnAbortDuringAStepThatFails checks that an abort that is recorded while a step runs is handled when the step
// fails, without waiting for its retry.
func TestAnAbortDuringAStepThatFails(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(3)
	w.fail = map[mover.Step]mover.StepFailed{mover.CreateCopies: {Message: "the target does not answer"}}
	w.before = func(ctx context.Context, step mover.Step) error {
		if step != mover.CreateCopies {
			return nil
		}
		return process("user", l, nil).Abort(ctx, "go", "user/test", "seen enough")
	}
	r := process("one", l, w)
	r.After = func(time.Duration) <-chan time.Time { return nil }
	moves, _ := drive(t, l, r, 1)
	request(t, l, "go")
	eventually(t, "the rollback", func() bool { s, _ := moves.Status("go"); return s.Phase == mover.PhaseRolledBack })
	w.check(t, mover.PhaseRolledBack)
}

// TestSupervisorStops checks that a supervisor that is stopped interrupts its steps, and that another one continues the
// moves.
func TestSupervisorStops(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	inStep := make(chan struct{})
	w.before = func(ctx context.Context, step mover.Step) error {
		if step == mover.CreateCopies {
			close(inStep)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	request(t, l, "go")
	_, stop := drive(t, l, process("one", l, w), 1)
	<-inStep
	stop()

	w.before = nil
	moves, _ := drive(t, l, process("two", l, w), 1)
	eventually(t, "the move at its end", func() bool { s, _ := moves.Status("go"); return s.Phase == mover.PhaseSucceeded })
	w.check(t, mover.PhaseSucceeded)
}

// TestSupervisorWaitsForAHuman checks that a failed move that waits for a user frees its worker, and starts again after
// the user's decision.
func TestSupervisorWaitsForAHuman(t *testing.T) {
	l, w := logtest.Open(t), newFakeClusters(4)
	w.fail = map[mover.Step]mover.StepFailed{mover.CreateCopies: {Message: "quota exceeded", Final: true}}
	r := process("one", l, w)
	spec := testSpec()
	spec.KeepFailed = true
	if err := r.Request(t.Context(), "go", "user/test", spec); err != nil {
		t.Fatal(err)
	}
	moves, _ := drive(t, l, r, 1)
	eventually(t, "the failure", func() bool { s, _ := moves.Status("go"); return s.Phase == mover.PhaseFailed })
	if _, due := moves.Due("go"); due {
		t.Error("a failed move is due")
	}
	if err := r.Abort(t.Context(), "go", "user/test", "seen enough"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rollback", func() bool { s, _ := moves.Status("go"); return s.Phase == mover.PhaseRolledBack })
	w.check(t, mover.PhaseRolledBack)
}
