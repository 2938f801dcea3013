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

// TestDeathAtEveryEffect kills the process at each of its appends and writes, before it has happened and after, until a pause gets
// through: between the mark on a Cluster and its record, and between what is restored and its record, among them. The next process
// brings it to the end that a pause without a death has.
func TestDeathAtEveryEffect(t *testing.T) {
	l := logtest.Open(t)
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			for n := 1; ; n++ {
				id, w := fmt.Sprintf("fleet/p/%t-%d", after, n), newWorld(t)
				ask(t, l, id)
				release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)
				err := drive(t, "mortal", &life{at: n, after: after}, l, w, id, release)
				if err != nil && !errors.Is(err, errDead) {
					t.Fatalf("effect %d: %v", n, err)
				}
				if err := drive(t, "heir", &life{}, l, w, id, release); err != nil {
					t.Fatalf("after a death at effect %d: %v", n, err)
				}
				s := stateOf(t, l, id)
				w.isOver(t, &s)
				if len(s.Acks) != 4 || s.AsleepAll > 0 {
					t.Errorf("after a death at effect %d: %d objects have acknowledged, %d are not awake", n, len(s.Acks), s.AsleepAll)
				}
				if err == nil {
					t.Logf("%d effects tried", n)
					if n < 10 {
						t.Error("a pause has more effects")
					}
					return
				}
			}
		})
	}
}

// A Pause that is deleted while objects have not acknowledged is restored at once.
func TestReleaseBeforeItIsAcknowledged(t *testing.T) {
	l, w, id := logtest.Open(t), newWorld(t), "fleet/p/silent"
	w.silent = true
	ask(t, l, id)
	if err := drive(t, "one", &life{}, l, w, id, releaseWhen(t, l, id, v1alpha1.PauseAcknowledging)); err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, id)
	w.isOver(t, &s)
	if s.Acks[machine("a")].How != "" {
		t.Errorf("%+v", s.Acks)
	}
}

// A Pause that is deleted in the middle of a turn is restored without a wait.
func TestReleaseDuringATurn(t *testing.T) {
	l, w, id := logtest.Open(t), newWorld(t), "fleet/p/late"
	ask(t, l, id)
	release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledging)
	err := drive(t, "one", &life{}, overtaken{l, release}, w, id, func() {
		if s := stateOf(t, l, id); s.Releasing && s.RestoredAt.IsZero() {
			t.Error("it waits before it restores")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	s := stateOf(t, l, id)
	w.isOver(t, &s)
}

// overtaken is a log in which somebody else writes just before each commit.
type overtaken struct {
	aggregate.Log

	write func()
}

func (o overtaken) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	o.write()
	return o.Log.Append(ctx, c)
}

// While the API server refuses to write, a Pause says what is refused and what to do, and continues once it may: when it pauses, and
// when it restores.
func TestRefusedWrites(t *testing.T) {
	for name, at := range map[string]v1alpha1.PausePhase{"pausing": v1alpha1.PausePausing, "restoring": v1alpha1.PauseRestoring} {
		t.Run(name, func(t *testing.T) {
			l, w, id := logtest.Open(t), newWorld(t), "fleet/p/"+name
			w.denied = at == v1alpha1.PausePausing
			ask(t, l, id)
			release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)
			var said request.TransientFailure
			err := drive(t, "one", &life{}, l, w, id, func() {
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
			w.isOver(t, &s)
			if !strings.Contains(said.Message, "the test refuses it") || !strings.Contains(said.Next, "it is tried again") || s.TransientFailure != (request.TransientFailure{}) {
				t.Errorf("said %+v, left %+v", said, s.TransientFailure)
			}
			if at == v1alpha1.PauseRestoring && !strings.Contains(said.Next, "remove finalizer scute.dev/pause") {
				t.Errorf("next %q", said.Next)
			}
		})
	}
}

// A process dies after it has paused a Cluster, and before the log has that. A user resumes the Cluster. The next process leaves it to them.
func TestResumedBeforeThePauseIsRecorded(t *testing.T) {
	l, tried := logtest.Open(t), 0
	for n := 1; n < 20; n++ {
		id, w := fmt.Sprintf("fleet/p/%d", n), newWorld(t)
		ask(t, l, id)
		if err := drive(t, "mortal", &life{at: n, after: true}, l, w, id, func() {}); !errors.Is(err, errDead) {
			t.Fatalf("effect %d: %v", n, err)
		}
		if s := stateOf(t, l, id); len(s.Set) > 0 {
			break // it is recorded
		}
		if paused, _ := w.holds(t, "a"); !paused {
			continue
		}
		tried++
		w.do(func() {
			w.clusters["a"], _ = jsonpatch.MergePatch(w.clusters["a"], []byte(`{"spec":{"paused":false}}`))
		})
		release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledging, v1alpha1.PauseAcknowledged)
		err := drive(t, "heir", &life{}, l, w, id, func() {
			if s := stateOf(t, l, id); !s.Releasing && len(s.Set) == 2 {
				if paused, _ := w.holds(t, "a"); paused {
					t.Errorf("after a death at effect %d: it is paused again", n)
				}
				release()
			}
		})
		if err != nil {
			t.Fatalf("after a death at effect %d: %v", n, err)
		}
		s := stateOf(t, l, id)
		w.isOver(t, &s)
	}
	if tried == 0 {
		t.Error("no process died between the two")
	}
}
