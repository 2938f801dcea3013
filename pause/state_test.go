package pause_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// TestWatch checks that Evaluate returns new and pending acknowledgements, names the objects to touch once nothing new
// appears, and reports itself stable when the objects stay the same.
func TestWatch(t *testing.T) {
	named := func(kind, name string) object.Ref {
		return object.Ref{Group: object.CoreGroup, Kind: kind, Namespace: "fleet", Name: name}
	}
	subject := func(kind, name string, paused object.ConditionStatus) pause.Subject {
		return pause.Subject{Observed: object.Observed{Ref: named(kind, name), UID: "u", ClusterName: "a", Paused: paused}, Cluster: "a"}
	}
	begun := time.Unix(100, 0)
	s := &pause.State{
		Roots:    []pause.Root{{Ref: named("Cluster", "a"), UID: "u"}},
		Baseline: map[object.Ref]pause.Baseline{named("Machine", "one"): {UID: "u", Paused: object.False}, named("Machine", "two"): {UID: "u"}},
		PausedAt: begun,
	}
	free := subject("Machine", "kept", object.False)
	free.Exempt = true
	subjects := []pause.Subject{subject("Machine", "one", object.True), subject("Machine", "two", object.False), free}
	var w pause.Watch
	look := w.Evaluate(s, subjects, nil, begun)
	want := pause.Evaluation{
		New:     map[object.Ref]pause.Signal{named("Machine", "one"): pause.ByCondition},
		Pending: []pause.PendingObject{{Ref: named("Machine", "two"), Reason: "condition Paused is False"}},
	}
	if diff := cmp.Diff(want, look); diff != "" {
		t.Error(diff)
	}
	s.Acks = look.New
	if look = w.Evaluate(s, subjects, nil, begun); len(look.New) > 0 || look.Wake != nil {
		t.Errorf("first look without anything new = %+v, want no Wake", look)
	}
	if look = w.Evaluate(s, subjects, nil, begun.Add(499*time.Millisecond)); look.Wake != nil {
		t.Errorf("second look without anything new, too soon after the pause = %+v, want no Wake", look)
	}
	if look = w.Evaluate(s, subjects, nil, begun.Add(500*time.Millisecond)); !slices.Equal(look.Wake, []object.Ref{named("Machine", "two")}) {
		t.Errorf("look half a second after the pause = %+v, want Wake of Machine two", look)
	}
	subjects[1].Paused = object.True
	if look = w.Evaluate(s, subjects, nil, begun); len(look.New) != 1 || !look.Stable {
		t.Errorf("look with all objects acknowledged = %+v, want it stable", look)
	}
	subjects[0].UID = "another"
	if look = w.Evaluate(s, subjects, nil, begun); look.New[named("Machine", "one")] == "" || look.Stable {
		t.Errorf("look after an acknowledged object was recreated = %+v, want a new acknowledgement", look)
	}
}

func TestLifted(t *testing.T) {
	root := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "a"}
	s := &pause.State{Roots: []pause.Root{{Ref: root}}}
	cluster := func(paused bool) []pause.Subject {
		return []pause.Subject{{Observed: object.Observed{Ref: root, Cluster: &object.ClusterFacts{Paused: paused}}, Cluster: "a"}}
	}
	for name, c := range map[string]struct {
		subjects []pause.Subject
		lifted   bool
	}{"paused": {cluster(true), false}, "resumed": {cluster(false), true}, "gone": {nil, true}} {
		if ref, lifted := s.FindUnpaused(c.subjects); lifted != c.lifted || lifted && ref != root {
			t.Errorf("%s: Lifted = %s, %t", name, ref, lifted)
		}
	}
	users := pause.PausedClustersOf(cluster(true))
	machine := pause.Subject{Cluster: "a"}
	if other := (pause.Subject{Cluster: "b"}); !users.IsPaused(machine) || users.IsPaused(other) {
		t.Error("a user's pause must hold only the objects of its Cluster")
	}
	if own := (pause.Subject{Observed: object.Observed{PausedByUser: true}, Cluster: "b"}); !users.IsPaused(own) {
		t.Error("a user's pause of an object itself must hold it")
	}
}
