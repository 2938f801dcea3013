package runner_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog/logtest"
)

// TestLargeLooksLeaveTimeToTheControllers checks that the runner waits at least as long as its last read of the objects
// took. For many Clusters such a read occupies the API server for seconds, which the controllers need to acknowledge
// and to resume.
func TestLargeLooksLeaveTimeToTheControllers(t *testing.T) {
	const took = 40 * time.Second
	l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/large"
	w.silent = true
	var passed atomic.Int64
	w.onEvaluate = func() { passed.Add(int64(took)) }
	requestPause(t, l, id)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	waits, resumed := 0, false
	r := newProcess(t, "one", &lifetime{}, l, w, func() {})
	began := time.Now()
	r.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	r.After = func(wait time.Duration) <-chan time.Time {
		passed.Add(int64(wait))
		if waits++; wait < took {
			t.Errorf("wait %d, phase %s: %s, want at least %s", waits, stateOf(t, l, id).Phase, wait, took)
		}
		switch {
		case waits == 3:
			w.do(func() { w.silent = false })
		case stateOf(t, l, id).Phase == v1alpha1.PauseAcknowledged:
			w.do(func() { w.asleep = true })
			releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)()
		case stateOf(t, l, id).Phase == v1alpha1.PauseResuming:
			w.do(func() { w.asleep = false })
			resumed = true
		case waits == 10:
			t.Errorf("phase after ten reads = %s", stateOf(t, l, id).Phase)
			stop()
		}
		over := make(chan time.Time, 1)
		over <- time.Time{}
		return over
	}
	if err := r.Drive(ctx, id); err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, id)
	w.checkRestored(t, &s)
	if !resumed {
		t.Error("the runner did not wait for objects that were still paused")
	}
}
