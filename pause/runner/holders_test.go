package runner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/client-go/rest"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog/logtest"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
	"scute.dev/pause/request"
)

// otherHolder is another holder of Cluster a.
type otherHolder struct {
	t       *testing.T
	cluster *kube.Cluster
	mark    hold.Holder
	root    pause.Root
}

func (w *testServer) newOtherHolder(t *testing.T, mark hold.Holder) *otherHolder {
	t.Helper()
	c, err := kube.Connect("other", &rest.Config{Host: w.url})
	if err != nil {
		t.Fatal(err)
	}
	ref := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "a"}
	return &otherHolder{t: t, cluster: c, mark: mark, root: pause.Root{Ref: ref, UID: "uid-a"}}
}

func (o *otherHolder) set() error {
	kind, _ := graph{}.Kind(o.root.Ref)
	return hold.SwitchOf(o.root.Ref).Set(o.t.Context(), o.cluster, kind, o.root, o.mark)
}

func (o *otherHolder) restore() {
	o.t.Helper()
	kind, _ := graph{}.Kind(o.root.Ref)
	if err := hold.SwitchOf(o.root.Ref).Restore(o.t.Context(), o.cluster, kind, o.root, o.mark); err != nil {
		o.t.Error(err)
	}
}

func (w *testServer) wantPaused(t *testing.T, when string, paused bool) {
	t.Helper()
	if is, annotations := w.clusterState(t, "a"); is != paused {
		t.Errorf("%s: Cluster a: paused %t with annotations %v", when, is, annotations)
	}
}

// TestBesideATaskOfARun checks that a task of a run and a Pause can hold a Cluster at the same time, in any order. The
// Cluster stays paused until both have released it, and the last one restores the original state.
func TestBesideATaskOfARun(t *testing.T) {
	for name, c := range map[string]struct{ runFirst, runLast bool }{
		"the run within the Pause": {false, false}, "the run after the Pause": {false, true},
		"the run before the Pause": {true, false}, "the Pause within the run": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/1"
			run := w.newOtherHolder(t, hold.RunHolder("fleet/r/1/hold"))
			set := func() {
				if err := run.set(); err != nil {
					t.Error(err)
				}
			}
			if c.runFirst {
				set()
			}
			requestPause(t, l, id)
			release, beside := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged), false
			err := drive(t, "one", &lifetime{}, l, w, id, func() {
				if s := stateOf(t, l, id); s.Phase == v1alpha1.PauseAcknowledged && !s.Releasing && !beside {
					if beside = true; !c.runFirst {
						set()
					}
					if !c.runLast {
						run.restore()
					}
					w.wantPaused(t, "while the Pause holds it", true)
				}
				release()
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.runLast {
				w.wantPaused(t, "while the run holds it", true)
				run.restore()
			}
			s := stateOf(t, l, id)
			w.checkRestored(t, &s)
		})
	}
}

// TestBesideAMove checks that a Pause waits for a move that holds the Cluster and reports which move, and that a move
// cannot hold a Cluster that a Pause holds.
func TestBesideAMove(t *testing.T) {
	l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/1"
	move := w.newOtherHolder(t, hold.MoveHolder("fleet/m/1", "log"))
	if err := move.set(); err != nil {
		t.Fatal(err)
	}
	requestPause(t, l, id)
	release, waited, refused := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged), "", error(nil)
	err := drive(t, "one", &lifetime{}, l, w, id, func() {
		s := stateOf(t, l, id)
		if i := slices.IndexFunc(s.Pending.Objects, func(p pause.PendingObject) bool { return p.Ref == move.root.Ref }); i >= 0 && waited == "" {
			waited = s.Pending.Objects[i].Reason
			if _, annotations := w.clusterState(t, "a"); len(annotations) != 2 {
				t.Errorf("annotations while the move holds the Cluster = %v, want 2", annotations)
			}
			if message, _ := request.Explain(&s); s.Phase == v1alpha1.PauseAcknowledged || !strings.Contains(message, "it is held by move fleet/m/1") {
				t.Errorf("phase %s with message %q, want a wait for the move", s.Phase, message)
			}
			move.restore()
		}
		if s.Phase == v1alpha1.PauseAcknowledged && !s.Releasing {
			w.wantPaused(t, "when every object has acknowledged", true)
			if how := s.Acks[machine("a")].How; how != pause.ByCondition {
				t.Errorf("the Machine acknowledged by %q: its acknowledgement of the move was counted", how)
			}
			refused = move.set()
		}
		release()
	})
	if err != nil {
		t.Fatal(err)
	}
	if waited != "it is held by move fleet/m/1 in event log log" {
		t.Errorf("the Pause waited for %q", waited)
	}
	if !errors.Is(refused, hold.ErrHeld) || !strings.Contains(refused.Error(), "it is held by Pause fleet/p") {
		t.Errorf("the move's error = %v, want ErrHeld with the Pause", refused)
	}
	s := stateOf(t, l, id)
	w.checkRestored(t, &s)
}

// TestAPauseOfTheUserStays checks that a Cluster stays paused if a user pauses it while a Pause holds it. The recorded
// state does not show this, but the managed fields do.
func TestAPauseOfTheUserStays(t *testing.T) {
	for name, manager := range map[string]string{"of the user": "flux", "of scute": kube.FieldManager, "of nobody that is known": "ancient-changes"} {
		t.Run(name, func(t *testing.T) {
			l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/1"
			requestPause(t, l, id)
			release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)
			err := drive(t, "one", &lifetime{}, l, w, id, func() {
				w.do(func() {
					fields := `{"metadata":{"managedFields":[{"manager":"` + manager + `","operation":"Apply","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:paused":{}}}}]}}`
					w.clusters["a"], _ = jsonpatch.MergePatch(w.clusters["a"], []byte(fields))
				})
				release()
			})
			if err != nil {
				t.Fatal(err)
			}
			w.wantPaused(t, "when the Pause is over", manager == "flux")
			if _, annotations := w.clusterState(t, "a"); len(annotations) > 0 {
				t.Errorf("annotations remain: %v", annotations)
			}
		})
	}
}

// TestAResumeOfTheUserStays checks that a Cluster that a user had paused, and resumes while a Pause holds it, is not
// paused again by the restore.
func TestAResumeOfTheUserStays(t *testing.T) {
	l, w, id := logtest.Open(t), newTestServer(t), "fleet/p/1"
	requestPause(t, l, id)
	release := releaseWhen(t, l, id, v1alpha1.PauseAcknowledged)
	err := drive(t, "one", &lifetime{}, l, w, id, func() {
		if s := stateOf(t, l, id); s.Phase == v1alpha1.PauseAcknowledged && !s.Releasing {
			w.do(func() {
				w.clusters["b"], _ = jsonpatch.MergePatch(w.clusters["b"], []byte(`{"spec":{"paused":false}}`))
			})
		}
		release()
	})
	if err != nil {
		t.Fatal(err)
	}
	if paused, annotations := w.clusterState(t, "b"); paused || len(annotations) > 0 {
		t.Errorf("after the Pause: paused %t with annotations %v", paused, annotations)
	}
}
