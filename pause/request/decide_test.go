package request_test

import (
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// world decides and applies, with a clock that the test moves.
type world struct {
	t     *testing.T
	state request.State
	now   time.Time
}

func (w *world) see(o request.Observation, phase v1alpha1.PausePhase) {
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

func ref(kind, name string) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: kind, Namespace: "fleet", Name: name}
}

// A pause that times out continues to look, is acknowledged later, and is over once everything is awake.
func TestDecide(t *testing.T) {
	w := &world{t: t, now: time.Unix(1000, 0)}
	minute := request.Duration(time.Minute)
	w.state.Apply(request.Requested{Spec: request.Spec{Namespace: "fleet", Name: "p", Clusters: []string{"a"}, Acknowledge: minute, Awake: minute}}, w.now)
	w.state.Apply(request.Claimed{Holder: "one"}, w.now)
	prod, machine := ref("Cluster", "a"), ref("Machine", "m")
	for _, e := range request.Decide(&w.state, request.Selected{Roots: []pause.Root{{Ref: prod, UID: "1"}}}, w.now) {
		w.state.Apply(e, w.now)
	}
	w.see(request.Set{}, v1alpha1.PausePausing)
	w.state.Apply(request.Paused{Roots: []object.Ref{prod}}, w.now)

	silent := map[string][]pause.Wait{"a": {{Ref: machine, Why: "condition Paused is False"}}}
	for _, e := range request.Decide(&w.state, request.Looked{New: map[object.Ref]request.Ack{prod: {How: pause.ByCondition, Cluster: "a"}}, Pending: silent}, w.now) {
		w.state.Apply(e, w.now)
	}
	w.see(request.Looked{Pending: silent}, v1alpha1.PauseAcknowledging)
	w.now = w.now.Add(time.Minute)
	w.see(request.Looked{Pending: silent}, v1alpha1.PauseTimedOut)
	if s := request.Status(&w.state); s.Next == "" || s.Counts.Pending != 1 || s.Counts.Acknowledged != 1 || len(s.WaitingFor) != 1 {
		t.Errorf("%+v", s)
	}
	for _, e := range request.Decide(&w.state, request.Looked{New: map[object.Ref]request.Ack{machine: {How: pause.ByCondition, Cluster: "a"}}, Stable: true}, w.now) {
		w.state.Apply(e, w.now)
	}
	w.see(request.Looked{Stable: true}, v1alpha1.PauseAcknowledged)

	w.state.Apply(request.ReleaseRequested{}, w.now)
	w.see(request.Looked{Pending: silent}, v1alpha1.PauseRestoring)
	w.see(request.Unpaused{}, v1alpha1.PauseResuming)
	w.see(request.Awake{Asleep: silent["a"]}, v1alpha1.PauseResuming)
	w.now = w.now.Add(time.Minute)
	w.see(request.Awake{Asleep: silent["a"]}, v1alpha1.PauseReleased)
	if s := request.Status(&w.state); s.Counts.Asleep != 1 || s.FinishedAt == nil || s.Next == "" {
		t.Errorf("%+v", s)
	}
}
