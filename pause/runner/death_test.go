package runner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/pause/request"
)

// TestDeathAtEveryEffect kills the process before and after each of its appends and writes, such as between the
// annotation of a Cluster and its record, or between a restore and its record. The next process must complete the pause
// with the same result.
func TestDeathAtEveryEffect(t *testing.T) {
	l := logtest.Open(t)
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			for n := 1; ; n++ {
				id, w := fmt.Sprintf("fleet/p/%t-%d", after, n), newTestServer(t)
				requestPause(t, l, id)
				release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)
				err := drive(t, "mortal", &lifetime{at: n, after: after}, l, w, id, release)
				if err != nil && !errors.Is(err, errDead) {
					t.Fatalf("effect %d: %v", n, err)
				}
				if err := drive(t, "heir", &lifetime{}, l, w, id, release); err != nil {
					t.Fatalf("after a crash at effect %d: %v", n, err)
				}
				s := stateOf(t, l, id)
				w.checkRestored(t, &s)
				if len(s.Acks) != 4 || s.StillPausedTotal > 0 {
					t.Errorf("after a crash at effect %d: %d objects have acknowledged, %d are not awake", n, len(s.Acks), s.StillPausedTotal)
				}
				if err == nil {
					t.Logf("tried %d effects", n)
					if n < 10 {
						t.Error("a pause must have at least 10 effects")
					}
					return
				}
			}
		})
	}
}

// TestReleaseBeforeItIsAcknowledged checks that a Pause that is deleted before all objects have acknowledged is
// restored at once.
func TestReleaseBeforeItIsAcknowledged(t *testing.T) {
	l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/silent"
	w.silent = true
	requestPause(t, l, id)
	if err := drive(t, "one", &lifetime{}, l, w, id, releaseWhen(t, l, id, v1alpha1.PauseAcknowledging)); err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, id)
	w.checkRestored(t, &s)
	if s.Acks[machine("a")].How != "" {
		t.Errorf("acknowledgements = %+v, want none of the Machine", s.Acks)
	}
}

// TestReleaseDuringATurn checks that a Pause that is deleted during a reconciliation is restored without a wait.
func TestReleaseDuringATurn(t *testing.T) {
	l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/late"
	requestPause(t, l, id)
	release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledging)
	err := drive(t, "one", &lifetime{}, conflictingLog{l, release}, w, id, func() {
		if s := stateOf(t, l, id); s.Releasing && s.RestoredAt.IsZero() {
			t.Error("the runner waits before it restores")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, id)
	w.checkRestored(t, &s)
}

// conflictingLog is a log that calls write before each commit, to simulate another writer.
type conflictingLog struct {
	aggregate.Log

	write func()
}

func (o conflictingLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	o.write()
	return o.Log.Append(ctx, c)
}

// TestRefusedWrites checks that a Pause reports a write that the API server refuses, with what to do, and continues
// once writes are permitted: while pausing and while restoring.
func TestRefusedWrites(t *testing.T) {
	for name, at := range map[string]v1alpha1.PausePhase{"pausing": v1alpha1.PausePausing, "restoring": v1alpha1.PauseRestoring} {
		t.Run(name, func(t *testing.T) {
			l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/"+name
			w.denied = at == v1alpha1.PausePausing
			requestPause(t, l, id)
			release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)
			var said request.TransientFailure
			err := drive(t, "one", &lifetime{}, l, w, id, func() {
				s := stateOf(t, l, id)
				if s.Phase == v1alpha1.PauseAcknowledged {
					w.do(func() { w.denied = at == v1alpha1.PauseRestoring })
				}
				if s.Phase == at && s.TransientFailure.Message != "" {
					said = s.TransientFailure
					w.do(func() { w.denied = false })
				}
				release()
			})
			if err != nil {
				t.Fatal(err)
			}
			s := stateOf(t, l, id)
			w.checkRestored(t, &s)
			if !strings.Contains(said.Message, "the test refuses it") || !strings.Contains(said.Next, "scute retries") || s.TransientFailure != (request.TransientFailure{}) {
				t.Errorf("reported failure = %+v, remaining failure = %+v, want none remaining", said, s.TransientFailure)
			}
			if at == v1alpha1.PauseRestoring && !strings.Contains(said.Next, "remove finalizer scute.dev/pause") {
				t.Errorf("Next = %q, want advice to remove the finalizer", said.Next)
			}
		})
	}
}

// TestResumedBeforeThePauseIsRecorded kills the process after it paused a Cluster and before this is recorded, and then
// resumes the Cluster as a user. The next process must not pause it again.
func TestResumedBeforeThePauseIsRecorded(t *testing.T) {
	l, tried := logtest.Open(t), 0
	for n := 1; n < 20; n++ {
		id, w := fmt.Sprintf("fleet/p/%d", n), newTestServer(t)
		requestPause(t, l, id)
		if err := drive(t, "mortal", &lifetime{at: n, after: true}, l, w, id, func() {}); !errors.Is(err, errDead) {
			t.Fatalf("effect %d: %v", n, err)
		}
		if s := stateOf(t, l, id); len(s.Set) > 0 {
			break // it is recorded
		}
		if paused, _ := w.clusterState(t, "a"); !paused {
			continue
		}
		tried++
		w.do(func() {
			w.clusters["a"], _ = jsonpatch.MergePatch(w.clusters["a"], []byte(`{"spec":{"paused":false}}`))
		})
		release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledging, v1alpha1.PauseAcknowledged)
		err := drive(t, "heir", &lifetime{}, l, w, id, func() {
			if s := stateOf(t, l, id); !s.Releasing && len(s.Set) == 2 {
				if paused, _ := w.clusterState(t, "a"); paused {
					t.Errorf("after a crash at effect %d: the Cluster was paused again", n)
				}
				release()
			}
		})
		if err != nil {
			t.Fatalf("after a crash at effect %d: %v", n, err)
		}
		s := stateOf(t, l, id)
		w.checkRestored(t, &s)
	}
	if tried == 0 {
		t.Error("no process was killed between the write and its record")
	}
}
