package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// funcKind is a kind of one function.
type funcKind struct {
	kind
	run func(context.Context, *task.Call) (json.RawMessage, error)
}

func (a *funcKind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	return a.run(ctx, c)
}

// kindsFor returns kinds in which Do is the function.
func (w *fixture) kindsFor(run func(context.Context, *task.Call) (json.RawMessage, error)) func(context.Context, workflow.Header) (task.Kinds, error) {
	return func(context.Context, workflow.Header) (task.Kinds, error) {
		return task.Kinds{"Do": &funcKind{kind{fixture: w}, run}}, nil
	}
}

// TestAllOfAnAttemptWorksAgain checks that several goroutines of an attempt can wait for its worker, and that each of
// them is woken.
func TestAllOfAnAttemptWorksAgain(t *testing.T) {
	w := newFixture(t)
	r := w.process("one", nil)
	taken := make(chan struct{})
	r.Kinds = w.kindsFor(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		c.Yield()
		<-taken
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := c.ReacquireSlot(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return nil, nil
	})
	r.Slots = fair.NewSlots(1)
	other, asked := r.Slots.Slot(""), 0 // of the namespace of the run
	var once sync.Once
	r.After = func(time.Duration) <-chan time.Time {
		switch {
		case asked == 2:
		case r.Throttled(id).Reason != supervise.NoFreePlace:
			if other.Request(); other.Held() {
				once.Do(func() { close(taken) })
			}
		default:
			if asked++; asked == 2 {
				other.Release()
			}
		}
		return nil
	}
	w.request("tasks: [{name: a, kind: Do}]")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	w.want("Succeeded a=Succeeded")
}

// TestAttemptsNeedNoDriver checks that an attempt that has not waited continues without a request, and that an attempt
// that must end does not wait for its driver.
func TestAttemptsNeedNoDriver(t *testing.T) {
	w := newFixture(t)
	r := w.process("one", nil)
	ended, end := context.WithCancel(t.Context())
	end()
	waits := make(chan struct{})
	r.Kinds = w.kindsFor(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		if err := c.ReacquireSlot(ended); err != nil {
			t.Errorf("ReacquireSlot without a wait = %v", err)
		}
		c.Yield()
		close(waits)
		<-ctx.Done()
		return nil, c.ReacquireSlot(ctx)
	})
	w.request("tasks: [{name: a, kind: Do}]")
	ctx, stop := context.WithCancel(t.Context())
	done := w.driving(ctx, r)
	<-waits
	stop()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the driver does not end")
	}
}

// TestTheTimeOfAnAttemptContinues checks that the timeout of an attempt includes the time in which it waits for a
// worker.
func TestTheTimeOfAnAttemptContinues(t *testing.T) {
	w := newFixture(t)
	waits, holds := make(chan struct{}), make(chan struct{})
	r := w.process("one", nil)
	r.Kinds = w.kindsFor(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		c.Yield()
		close(waits)
		<-holds
		return nil, c.ReacquireSlot(ctx)
	})
	runs := w.supervise(r, 1)
	w.request("tasks: [{name: a, kind: Do, timeout: 1s}]")
	<-waits
	other := r.Slots.Slot("") // of the namespace of the run
	<-other.Request()
	close(holds)
	w.untilPhase(runs, id, v1alpha1.RunAborted)
	if status := workflow.Status(w.state()); !strings.Contains(status.Message, "timed out") {
		t.Errorf("message = %s, want the timeout", status.Message)
	}
}

// TestAPartOfAnAttemptNoLongerAsks checks that the request for a worker is dropped if the context of a part ends.
func TestAPartOfAnAttemptNoLongerAsks(t *testing.T) {
	w := newFixture(t)
	waits, holds, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := w.process("one", nil)
	part, over := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	r.Kinds = w.kindsFor(func(_ context.Context, c *task.Call) (json.RawMessage, error) {
		c.Yield()
		close(waits)
		<-holds
		refused <- c.ReacquireSlot(part)
		<-end
		return nil, nil
	})
	runs := w.supervise(r, 1)
	w.request("tasks: [{name: a, kind: Do}]")
	<-waits
	other := r.Slots.Slot("") // of the namespace of the run
	<-other.Request()
	close(holds)
	w.eventually("it asks for a place", func() bool { return r.Throttled(id).Reason == supervise.NoFreePlace })
	over()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("ReacquireSlot = %v, want context.Canceled", err)
	}
	other.Release()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Slots.Slot("").Acquire(ctx); err != nil {
		t.Error("it has a worker although it only waits")
	}
	close(end)
	w.untilPhase(runs, id, v1alpha1.RunSucceeded)
}

// TestAFreePlaceWakesTheDriver checks that a worker that becomes free wakes the driver, even between its request and
// its sleep. In this test no time passes.
func TestAFreePlaceWakesTheDriver(t *testing.T) {
	w := newFixture(t)
	r := w.process("one", nil)
	r.Slots = fair.NewSlots(1)
	other := r.Slots.Slot("") // of the namespace of the run
	<-other.Request()
	sleeps := 0
	r.After = func(time.Duration) <-chan time.Time {
		sleeps++
		other.Release() // it is about to sleep
		return nil
	}
	const wakes = 20
	r.Kinds = w.kindsFor(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		for range wakes {
			if err := c.Prepare(ctx, nil, false); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	w.request("tasks: [{name: a, kind: Do}]")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	w.want("Succeeded a=Succeeded")
	if most := wakes + 3; sleeps > most { // and for the worker, the start and the end
		t.Errorf("the driver woke up %d times, want at most %d", sleeps, most)
	}
}

// TestAnUndoIsNotKeptWaiting checks that runs that use all workers do not use up the timeout of an undo that has
// started.
func TestAnUndoIsNotKeptWaiting(t *testing.T) {
	w := newFixture(t)
	undo := w.gate("undo made")
	w.gate("long")
	r := w.process("one", nil)
	runs := w.supervise(r, 1)
	w.submit(r, "ns/made/0", "{failurePolicy: Rollback, tasks: [{name: made, kind: Do, with: {undoWaits: true, undoAgain: true}}, {name: fails, kind: Do, with: {fails: 1}, needs: [made]}]}")
	w.eventually("what it has made is taken away", func() bool { return strings.Contains(strings.Join(w.recorded(), " "), "undo made") })
	w.submit(r, "ns/long/0", "tasks: [{name: long, kind: Do}]")
	w.waitForLine("do long")
	close(undo)
	w.untilPhase(runs, "ns/made/0", v1alpha1.RunRolledBack)
}

// TestQuotaIsToldBesideWhatWorksAgain checks that a run whose namespace exceeds its quota reports it throughout, even
// while its tasks continue.
func TestQuotaIsToldBesideWhatWorksAgain(t *testing.T) {
	w := newFixture(t)
	wait, first, work := w.gate("wait"), w.gate("first"), w.gate("work")
	r := w.process("one", nil)
	var over atomic.Bool
	r.Quota = func(string) string {
		if over.Load() {
			return "too much"
		}
		return ""
	}
	var other atomic.Bool
	r.Changed = func(string) {
		if over.Load() && r.Throttled("ns/run/0").Reason != supervise.QuotaExceeded {
			other.Store(true)
		}
	}
	runs := w.supervise(r, 1)
	w.submit(r, "ns/run/0", `
tasks:
- {name: wait, kind: Do, with: {waits: true, again: true}}
- {name: work, kind: Do}
- {name: first, kind: Do}
- {name: next, kind: Do, needs: [first]}
`)
	for _, name := range []string{"wait", "work", "first"} {
		w.waitForLine("do " + name)
	}
	over.Store(true)
	close(first)
	w.eventually("the run is throttled", func() bool { return r.Throttled("ns/run/0").Reason == supervise.QuotaExceeded })
	close(wait)
	w.waitForLine("works again wait")
	if other.Load() {
		t.Error("the run was not throttled for a moment")
	}
	over.Store(false)
	close(work)
	w.untilPhase(runs, "ns/run/0", v1alpha1.RunSucceeded)
}
