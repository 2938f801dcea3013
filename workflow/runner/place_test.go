package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
)

// TestAFreePlaceWakesTheDriver also when it becomes free after the driver has asked for it, and before it sleeps. Here no time ever passes.
func TestAFreePlaceWakesTheDriver(t *testing.T) {
	w := newWorld(t)
	r := w.process("one", nil)
	r.Places = supervise.NewPlaces(1)
	other := r.Places.Place("") // of the namespace of the run
	<-other.Ask()
	r.After = func(time.Duration) <-chan time.Time {
		other.Give() // it is about to sleep
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
