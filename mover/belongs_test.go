package mover_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// labelledObjects draws Clusters a and b, and objects of any kind, label and owners.
func labelledObjects(t *rapid.T) []object.Observed {
	kinds := []string{"Machine", "MachineSet", "DevMachine", "DevMachineTemplate", "BareMetalHost", "Secret", "ConfigMap", "ClusterClass", "ClusterResourceSet", "Identity"}
	var world []object.Observed
	for _, name := range []string{"a", "b"} {
		r := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: name}
		world = append(world, object.Observed{Ref: r, UID: types.UID(r.String()), Cluster: &object.ClusterFacts{}})
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "objects") {
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		r := object.Ref{Group: groupOf(kind), Kind: kind, Namespace: "fleet", Name: string(rune('c' + i))}
		if kind == "Identity" {
			r.Namespace = ""
		}
		o := object.Observed{
			Ref: r, UID: types.UID(r.String()), ClusterName: rapid.SampledFrom([]string{"", "a", "a", "b", "ghost"}).Draw(t, "cluster"),
			Movable: rapid.IntRange(0, 5).Draw(t, "movable") == 0, Hierarchy: rapid.IntRange(0, 3).Draw(t, "hierarchy") == 0,
		}
		for range rapid.IntRange(0, 2).Draw(t, "owners") {
			owner := rapid.SampledFrom(world).Draw(t, "owner")
			uid := owner.UID
			if rapid.IntRange(0, 4).Draw(t, "gone") == 0 {
				uid = "nobody"
			}
			o.Owners = append(o.Owners, object.Owner{Ref: owner.Ref, UID: uid})
		}
		world = append(world, o)
	}
	for range rapid.IntRange(0, 1).Draw(t, "circles") { // also from earlier objects to later ones
		o, owner := rapid.IntRange(0, len(world)-1).Draw(t, "owned"), rapid.SampledFrom(world).Draw(t, "later")
		world[o].Owners = append(world[o].Owners, object.Owner{Ref: owner.Ref, UID: owner.UID})
	}
	return world
}

// TestWhatBelongsMoves checks that an object with the label of a selected Cluster moves, whatever its kind, or has an
// error with a remedy that is not already applied. Objects that stay have a warning only.
func TestWhatBelongsMoves(t *testing.T) {
	moved, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		world := labelledObjects(t)
		sel := mover.Selection{Namespace: "fleet", All: rapid.Bool().Draw(t, "all"), Clusters: []string{"a"}}
		m := mover.Select(world, sel)
		for _, o := range world {
			if pause.IsCluster(o.Ref) || o.ClusterName != "a" && !(sel.All && o.ClusterName == "b") {
				continue
			}
			at := slices.IndexFunc(m.Objects, func(m mover.Member) bool { return m.Ref == o.Ref })
			wrong := slices.IndexFunc(m.Findings, func(f mover.Finding) bool { return f.Severity == mover.Error && f.Field == o.Ref.String() })
			switch {
			case at < 0 && wrong < 0:
				t.Fatalf("%s belongs to Cluster %s but is left without an error", o.Ref, o.ClusterName)
			case at < 0:
				refused++
			case o.Ref.Kind == "Machine" || o.Ref.Kind == "DevMachine" || o.Ref.Kind == "BareMetalHost":
				if moved++; m.Objects[at].KeepReason != "" {
					t.Fatalf("%s would be on both sides: %s", o.Ref, m.Objects[at].KeepReason)
				}
			}
			if wrong >= 0 && o.Movable && !slices.ContainsFunc(m.Excluded, func(w mover.ObjectReason) bool { return w.Ref == o.Ref && w.Reason == cycleReason }) {
				t.Fatalf("%s has the label to move but is refused: %+v", o.Ref, m.Findings[wrong])
			}
		}
		for _, f := range m.Findings {
			if slices.ContainsFunc(m.ExclusionWarnings, func(s mover.Finding) bool { return s.Field == f.Field }) {
				t.Fatalf("%s has both an error and a warning that it stays", f.Field)
			}
		}
	})
	if moved == 0 || refused == 0 {
		t.Errorf("%d moved, %d were refused, want both: the worlds are not varied enough", moved, refused)
	}
}

const cycleReason = "it is in or below a cycle of owner references"

// TestTimeToAcknowledge checks that a kind's definition sets its timeout for acknowledgements, and that the timeout in
// the Move's spec takes precedence.
func TestTimeToAcknowledge(t *testing.T) {
	slow := object.Ref{Group: "example.com", Kind: "Slow", Namespace: "fleet", Name: "s"}
	for name, c := range map[string]struct {
		spec  map[string]mover.Duration
		limit mover.Duration
	}{
		"definition": {nil, 3},
		"the Move's": {map[string]mover.Duration{"Slow.example.com": 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			s := &mover.State{}
			decide := func(o mover.Outcome) {
				events, err := mover.Decide(s, o, now)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					s.Apply(e, now)
				}
			}
			minute := mover.Duration(time.Minute)
			for kind := range c.spec {
				c.spec[kind] *= minute
			}
			s.Apply(mover.Requested{Spec: mover.Spec{Clusters: []string{"a"}, Acknowledge: minute, AckKinds: c.spec}}, now)
			s.Apply(mover.Claimed{Holder: "one"}, now)
			decide(mover.PreflightDone{Clusters: []string{"a"}})
			decide(mover.BaselineRead{
				AckKinds: map[string]mover.Duration{"Slow.example.com": 3 * minute}, Objects: map[object.Ref]pause.Baseline{slow: {UID: "u"}},
				Roots: []pause.Root{{Ref: ref(t, "Cluster/a"), UID: "a"}},
			})
			decide(mover.Paused{})
			began := now
			pending := mover.AcksRead{Pending: []mover.ObjectReason{{Ref: slow, Reason: "it is slow"}}}
			now = began.Add(time.Duration(c.limit*minute) - time.Second)
			if decide(pending); s.Phase != mover.PhaseAwaitingAcks {
				t.Errorf("phase a second before the timeout = %s, want AwaitingAcks", s.Phase)
			}
			now = began.Add(time.Duration(c.limit*minute) + time.Second)
			if decide(pending); s.Phase != mover.PhaseRollingBack {
				t.Errorf("phase a second after the timeout = %s, want RollingBack", s.Phase)
			}
		})
	}
}
