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
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// acting is a kind of one function.
type acting struct {
	kind
	run func(context.Context, *task.Call) (json.RawMessage, error)
}

func (a *acting) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	return a.run(ctx, c)
}

// doing has the kind Do be a function.
func (w *world) doing(run func(context.Context, *task.Call) (json.RawMessage, error)) func(context.Context, workflow.Header) (task.Kinds, error) {
	return func(context.Context, workflow.Header) (task.Kinds, error) {
		return task.Kinds{"Do": &acting{kind{world: w}, run}}, nil
	}
}

// TestAllOfAnAttemptWorksAgain: an attempt may ask from many goroutines, and each of them is answered.
func TestAllOfAnAttemptWorksAgain(t *testing.T) {
	w := newWorld(t)
	r := w.process("one", nil)
	taken := make(chan struct{})
	r.Kinds = w.doing(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		c.Waits()
		<-taken
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := c.WorksAgain(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		return nil, nil
	})
	r.Places = supervise.NewPlaces(1)
	other, asked := r.Places.Place(""), 0 // of the namespace of the run
	var once sync.Once
	r.After = func(time.Duration) <-chan time.Time {
		switch {
		case asked == 2:
		case r.Throttled(id).Reason != supervise.NoFreePlace:
			if other.Ask(); other.Held() {
				once.Do(func() { close(taken) })
			}
		default:
			if asked++; asked == 2 {
				other.Give()
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

// TestAttemptsNeedNoDriver: one that has not waited works on without asking, and one that has to end asks nobody.
func TestAttemptsNeedNoDriver(t *testing.T) {
	w := newWorld(t)
	r := w.process("one", nil)
	ended, end := context.WithCancel(t.Context())
	end()
	waits := make(chan struct{})
	r.Kinds = w.doing(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		if err := c.WorksAgain(ended); err != nil {
			t.Errorf("it has not waited, and was told: %v", err)
		}
		c.Waits()
		close(waits)
		<-ctx.Done()
		return nil, c.WorksAgain(ctx)
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
		t.Fatal("the driver never ends")
	}
}

// TestTheTimeOfAnAttemptContinues while it waits for a place.
func TestTheTimeOfAnAttemptContinues(t *testing.T) {
	w := newWorld(t)
	waits, holds := make(chan struct{}), make(chan struct{})
	r := w.process("one", nil)
	r.Kinds = w.doing(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
		c.Waits()
		close(waits)
		<-holds
		return nil, c.WorksAgain(ctx)
	})
	runs := w.supervise(r, 1)
	w.request("tasks: [{name: a, kind: Do, timeout: 1s}]")
	<-waits
	other := r.Places.Place("") // of the namespace of the run
	<-other.Ask()
	close(holds)
	w.untilPhase(runs, id, v1alpha1.RunAborted)
	if status := workflow.Status(w.state()); !strings.Contains(status.Message, "ran out of time") {
		t.Errorf("%s", status.Message)
	}
}

// TestAPartOfAnAttemptNoLongerAsks: when the time of a part is over, the attempt need not have a place, and gets none.
func TestAPartOfAnAttemptNoLongerAsks(t *testing.T) {
	w := newWorld(t)
	waits, holds, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := w.process("one", nil)
	part, over := context.WithCancel(t.Context())
	refused := make(chan error, 1)
	r.Kinds = w.doing(func(_ context.Context, c *task.Call) (json.RawMessage, error) {
		c.Waits()
		close(waits)
		<-holds
		refused <- c.WorksAgain(part)
		<-end
		return nil, nil
	})
	runs := w.supervise(r, 1)
	w.request("tasks: [{name: a, kind: Do}]")
	<-waits
	other := r.Places.Place("") // of the namespace of the run
	<-other.Ask()
	close(holds)
	w.eventually("it asks for a place", func() bool { return r.Throttled(id).Reason == supervise.NoFreePlace })
	over()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	other.Give()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.Places.Place("").Take(ctx); err != nil {
		t.Error("it has a place, and only waits")
	}
	close(end)
	w.untilPhase(runs, id, v1alpha1.RunSucceeded)
}

// TestAFreePlaceWakesTheDriver also when it becomes free after the driver has asked for it, and before it sleeps. Here no time ever passes.
func TestAFreePlaceWakesTheDriver(t *testing.T) {
	w := newWorld(t)
	r := w.process("one", nil)
	r.Places = supervise.NewPlaces(1)
	other := r.Places.Place("") // of the namespace of the run
	<-other.Ask()
	sleeps := 0
	r.After = func(time.Duration) <-chan time.Time {
		sleeps++
		other.Give() // it is about to sleep
		return nil
	}
	const wakes = 20
	r.Kinds = w.doing(func(ctx context.Context, c *task.Call) (json.RawMessage, error) {
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
	if most := wakes + 3; sleeps > most { // and for the place, the beginning and the end
		t.Errorf("the driver was awake %d times, want %d at most", sleeps, most)
	}
}

// TestAnUndoIsNotKeptWaiting: other runs that hold all places cannot use up the time of an undo that has begun.
func TestAnUndoIsNotKeptWaiting(t *testing.T) {
	w := newWorld(t)
	undo := w.gate("undo made")
	w.gate("long")
	r := w.process("one", nil)
	runs := w.supervise(r, 1)
	w.ask(r, "ns/made/0", "{failurePolicy: Rollback, tasks: [{name: made, kind: Do, with: {undoWaits: true, undoAgain: true}}, {name: fails, kind: Do, with: {fails: 1}, needs: [made]}]}")
	w.eventually("what it has made is taken away", func() bool { return strings.Contains(strings.Join(w.noted(), " "), "undo made") })
	w.ask(r, "ns/long/0", "tasks: [{name: long, kind: Do}]")
	w.until("do long")
	close(undo)
	w.untilPhase(runs, "ns/made/0", v1alpha1.RunRolledBack)
}

// TestQuotaIsToldBesideWhatWorksAgain: a run whose namespace is above its quota says so all the time, whatever works in it.
func TestQuotaIsToldBesideWhatWorksAgain(t *testing.T) {
	w := newWorld(t)
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
	w.ask(r, "ns/run/0", `
tasks:
- {name: wait, kind: Do, with: {waits: true, again: true}}
- {name: work, kind: Do}
- {name: first, kind: Do}
- {name: next, kind: Do, needs: [first]}
`)
	for _, name := range []string{"wait", "work", "first"} {
		w.until("do " + name)
	}
	over.Store(true)
	close(first)
	w.eventually("the run is throttled", func() bool { return r.Throttled("ns/run/0").Reason == supervise.QuotaExceeded })
	close(wait)
	w.until("works again wait")
	if other.Load() {
		t.Error("it said in between that nothing keeps it from starting what is next")
	}
	over.Store(false)
	close(work)
	w.untilPhase(runs, "ns/run/0", v1alpha1.RunSucceeded)
}
