package request_test

import (
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// fixture decides and applies, with a clock that the test advances.
type fixture struct {
	t     *testing.T
	state request.State
	now   time.Time
}

func (w *fixture) observe(o request.Observation, phase v1alpha1.PausePhase) {
	w.t.Helper()
	for _, e := range request.Decide(&w.state, o, w.now) {
		w.state.Apply(e, w.now)
	}
	if again := request.Decide(&w.state, o, w.now); len(again) > 0 {
		w.t.Errorf("%T: the same again is decided again: %+v", o, again)
	}
	if w.state.Phase != phase {
		w.t.Errorf("%T: phase %s, want %s", o, w.state.Phase, phase)
	}
}

// waitsUntil checks that the status has the time at which the present wait ends.
func (w *fixture) waitsUntil(end time.Time) {
	w.t.Helper()
	if got, want := request.Status(&w.state).Message, "waiting until "+end.UTC().Format(time.RFC3339)+" for "; !strings.Contains(got, want) {
		w.t.Errorf("message %q, want it to contain %q", got, want)
	}
}

func ref(kind, name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: kind, Namespace: "fleet", Name: name}
}

// TestDecide checks that a pause that timed out continues to wait, can still be acknowledged, and ends once its objects
// are awake or the timeout for waking has passed.
func TestDecide(t *testing.T) {
	w := &fixture{t: t, now: time.Unix(1000, 0)}
	minute := pause.Duration(time.Minute)
	w.state.Apply(request.Requested{Spec: request.Spec{Namespace: "fleet", Name: "p", Clusters: []string{"a"}, Acknowledge: minute, Resume: minute}}, w.now)
	w.state.Apply(request.Claimed{Holder: "one"}, w.now)
	prod, machine := ref("Cluster", "a"), ref("Machine", "m")
	for _, e := range request.Decide(&w.state, request.Selected{Roots: []pause.Root{{Ref: prod, UID: "1"}}}, w.now) {
		w.state.Apply(e, w.now)
	}
	w.observe(request.Paused{}, v1alpha1.PausePausing)
	w.state.Apply(request.Paused{Roots: []object.Ref{prod}}, w.now)

	silent := map[string][]pause.PendingObject{"a": {{Ref: machine, Reason: "condition Paused is False"}}}
	for _, e := range request.Decide(&w.state, request.Evaluated{New: map[object.Ref]request.Ack{prod: {How: pause.ByCondition, Cluster: "a"}}, Pending: silent}, w.now) {
		w.state.Apply(e, w.now)
	}
	w.observe(request.Evaluated{Pending: silent}, v1alpha1.PauseAcknowledging)
	w.waitsUntil(w.now.Add(time.Minute))
	w.now = w.now.Add(time.Minute)
	w.observe(request.Evaluated{Pending: silent}, v1alpha1.PauseTimedOut)
	if s := request.Status(&w.state); s.Next == "" || s.Counts.Pending != 1 || s.Counts.Acknowledged != 1 || len(s.WaitingFor) != 1 {
		t.Errorf("Status after the timeout = %+v", s)
	}
	for _, e := range request.Decide(&w.state, request.Evaluated{New: map[object.Ref]request.Ack{machine: {How: pause.ByCondition, Cluster: "a"}}, Stable: true}, w.now) {
		w.state.Apply(e, w.now)
	}
	w.observe(request.Evaluated{Stable: true}, v1alpha1.PauseAcknowledged)

	w.release(silent)
}

// TestReleasedWithoutAcknowledgement checks that the status of a released pause still reports objects that never
// acknowledged it.
func TestReleasedWithoutAcknowledgement(t *testing.T) {
	w := &fixture{t: t, now: time.Unix(1000, 0)}
	minute := pause.Duration(time.Minute)
	w.state.Apply(request.Requested{Spec: request.Spec{Namespace: "fleet", Name: "p", Clusters: []string{"a"}, Acknowledge: minute, Resume: minute}}, w.now)
	w.state.Apply(request.Claimed{Holder: "one"}, w.now)
	prod, machine := ref("Cluster", "a"), ref("Machine", "m")
	for _, e := range []request.Event{
		request.Intended{Roots: []pause.Root{{Ref: prod, UID: "1"}}},
		request.Paused{Roots: []object.Ref{prod}},
		request.Acknowledged{Objects: map[object.Ref]request.Ack{prod: {How: pause.ByCondition, Cluster: "a"}}},
	} {
		w.state.Apply(e, w.now)
	}
	silent := map[string][]pause.PendingObject{"a": {{Ref: machine, Reason: "condition Paused is False"}}}
	for range 2 {
		for _, e := range request.Decide(&w.state, request.Evaluated{Pending: silent}, w.now) {
			w.state.Apply(e, w.now)
		}
		w.now = w.now.Add(time.Minute)
	}
	w.release(silent)
	s := request.Status(&w.state)
	if s.Counts.Acknowledged != 1 || s.Counts.Objects != 2 || s.Counts.Pending != 1 || len(s.Unacknowledged) != 1 || s.Unacknowledged[0].Object != machine.String() ||
		s.Clusters[0].Pending != 1 || !strings.Contains(s.Message, "1 of 2 objects") || !strings.Contains(s.Message, machine.Short()) {
		t.Errorf("Status = %+v", s)
	}
}

// TestTimeToAcknowledge checks that a kind's definition sets its timeout for acknowledgements, and that the timeout in
// the Pause's spec takes precedence.
func TestTimeToAcknowledge(t *testing.T) {
	slow := ref("Slow", "s").GroupKind()
	for name, c := range map[string]struct {
		spec map[string]pause.Duration
		want time.Duration
	}{
		"definition":  {nil, 3 * time.Minute},
		"the Pause's": {map[string]pause.Duration{slow: pause.Duration(2 * time.Minute)}, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := &fixture{now: time.Unix(1000, 0)}
			w.state.Apply(request.Requested{Spec: request.Spec{Acknowledge: pause.Duration(time.Minute), AckKinds: c.spec}}, w.now)
			w.state.Apply(request.Claimed{Holder: "one"}, w.now)
			root := pause.Root{Ref: ref("Cluster", "a"), UID: "1"}
			for _, e := range request.Decide(&w.state, request.Selected{Roots: []pause.Root{root}, AckKinds: map[string]pause.Duration{slow: pause.Duration(3 * time.Minute)}}, w.now) {
				w.state.Apply(e, w.now)
			}
			w.state.Apply(request.Paused{Roots: []object.Ref{root.Ref}}, w.now)
			if got := w.state.AcknowledgeBy(slow).Sub(w.now); got != c.want {
				t.Errorf("timeout = %s, want %s", got, c.want)
			}
			if got := w.state.AcknowledgeBy("Machine." + object.CoreGroup).Sub(w.now); got != time.Minute {
				t.Errorf("timeout of another kind = %s, want 1m", got)
			}
		})
	}
}

// release ends the pause, with objects that do not wake in time.
func (w *fixture) release(silent map[string][]pause.PendingObject) {
	w.t.Helper()
	w.state.Apply(request.ReleaseRequested{}, w.now)
	w.observe(request.Evaluated{Pending: silent}, v1alpha1.PauseRestoring)
	w.observe(request.Restored{}, v1alpha1.PauseResuming)
	w.observe(request.ResumeEvaluated{StillPaused: silent["a"]}, v1alpha1.PauseResuming)
	w.waitsUntil(w.now.Add(time.Minute))
	w.now = w.now.Add(time.Minute)
	w.observe(request.ResumeEvaluated{StillPaused: silent["a"]}, v1alpha1.PauseReleased)
	if s := request.Status(&w.state); s.Counts.StillPaused != 1 || s.FinishedAt == nil || s.Next == "" {
		w.t.Errorf("%+v", s)
	}
}
