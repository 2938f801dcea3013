package pause_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// A look judges what has not acknowledged, names what a write would wake once looks bring nothing new, and is stable when the next one shows the same objects.
func TestWatch(t *testing.T) {
	named := func(kind, name string) object.Ref {
		return object.Ref{Group: object.CoreGroup, Kind: kind, Namespace: "fleet", Name: name}
	}
	subject := func(kind, name string, paused object.Truth) pause.Subject {
		return pause.Subject{Observed: object.Observed{Ref: named(kind, name), UID: "u", ClusterName: "a", Paused: paused}, Cluster: "a"}
	}
	begun := time.Unix(100, 0)
	s := &pause.State{
		Roots:    []pause.Root{{Ref: named("Cluster", "a"), UID: "u"}},
		Baseline: map[object.Ref]pause.Baseline{named("Machine", "one"): {UID: "u", Paused: object.False}, named("Machine", "two"): {UID: "u"}},
		PausedAt: begun,
	}
	free := subject("Machine", "kept", object.False)
	free.Free = true
	subjects := []pause.Subject{subject("Machine", "one", object.True), subject("Machine", "two", object.False), free}
	var w pause.Watch
	look := w.Look(s, subjects, nil, begun)
	want := pause.Look{
		New:     map[object.Ref]pause.Signal{named("Machine", "one"): pause.ByCondition},
		Pending: []pause.Wait{{Ref: named("Machine", "two"), Why: "condition Paused is False"}},
	}
	if diff := cmp.Diff(want, look); diff != "" {
		t.Error(diff)
	}
	s.Acks = look.New
	if look = w.Look(s, subjects, nil, begun); len(look.New) > 0 || look.Wake != nil {
		t.Errorf("the first look that brings nothing: %+v", look)
	}
	if look = w.Look(s, subjects, nil, begun.Add(499*time.Millisecond)); look.Wake != nil {
		t.Errorf("the second look that brings nothing, too soon after the pause: %+v", look)
	}
	if look = w.Look(s, subjects, nil, begun.Add(500*time.Millisecond)); !slices.Equal(look.Wake, []object.Ref{named("Machine", "two")}) {
		t.Errorf("half a second after the pause: %+v", look)
	}
	subjects[1].Paused = object.True
	if look = w.Look(s, subjects, nil, begun); len(look.New) != 1 || !look.Stable {
		t.Errorf("the same objects, all at rest: %+v", look)
	}
	subjects[0].UID = "another"
	if look = w.Look(s, subjects, nil, begun); look.New[named("Machine", "one")] == "" || look.Stable {
		t.Errorf("a namesake of one that had acknowledged: %+v", look)
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
		if ref, lifted := s.Lifted(c.subjects); lifted != c.lifted || lifted && ref != root {
			t.Errorf("%s: %s, %t", name, ref, lifted)
		}
	}
	users := pause.UsersOf(cluster(true))
	machine := pause.Subject{Cluster: "a"}
	if other := (pause.Subject{Cluster: "b"}); !users.Hold(machine) || users.Hold(other) {
		t.Error("a user's pause holds what belongs to its Cluster alone")
	}
	if own := (pause.Subject{Observed: object.Observed{PausedByUser: true}, Cluster: "b"}); !users.Hold(own) {
		t.Error("a user's own pause does not hold")
	}
}
