package transfer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// TestTheFirstRootDecidesWhoseMoveItIs checks that nothing is requested for other roots before the first root is held.
// Of two moves that start at the same time, one gets all roots.
func TestTheFirstRootDecidesWhoseMoveItIs(t *testing.T) {
	api := newFakeAPI(t)
	var roots []pause.Root
	for _, name := range []string{"a", "b", "c"} {
		ref := capi("Cluster", name)
		roots = append(roots, pause.Root{Ref: ref, UID: api.put(ref, obj{})})
	}
	mark := hold.MoveHolder("fleet/one/1", "log")
	held := func(root pause.Root) bool {
		return api.get(root.Ref).GetAnnotations()[object.MoveAnnotation] == mark.ID
	}
	api.hook = func(r *http.Request) {
		if strings.Contains(r.URL.Path, "/clusters/") && !strings.HasSuffix(r.URL.Path, "/a") && !held(roots[0]) {
			t.Errorf("%s %s before the first root is held", r.Method, r.URL.Path)
		}
	}
	k := kindOf(roots[0].Ref)
	w := hold.Writer{Cluster: api.cluster(t, "source"), Workers: len(roots), Kind: func(object.Ref) (kube.Type, error) {
		return kube.Type{Group: k.group, Kind: k.kind, Plural: k.plural, Versions: []string{k.version}, Namespaced: true}, nil
	}}
	if err := w.Set(t.Context(), roots, mark); err != nil {
		t.Fatal(err)
	}
	for _, root := range roots {
		if !held(root) {
			t.Errorf("%s is not held", root.Ref)
		}
	}
}

// TestSharedObjectsAreCreatedInOneOrder checks that moves to one target create shared objects in the same order, so
// that two moves never wait for each other.
func TestSharedObjectsAreCreatedInOneOrder(t *testing.T) {
	f := moved(t, mover.AllAcknowledged{})
	var items []mover.Item
	shared := make([]object.Ref, 9)
	for i := range shared {
		shared[len(shared)-1-i] = capi("Machine", fmt.Sprintf("shared-%d", i)) // in reverse order
	}
	for _, ref := range shared {
		items = append(items, mover.Item{Ref: ref, Version: "v1beta2", UID: f.src.put(ref, obj{}), KeepReason: "another Cluster uses it"})
	}
	f.apply(mover.PlanDrafted{First: true, Items: items})
	f.apply(mover.Planned{})
	const held = 3
	f.dst.put(capi("Machine", fmt.Sprintf("shared-%d", held)), obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: "fleet/other/1", object.LogAnnotation: logID}}})
	if message, _ := f.step(); !strings.Contains(message, "held by another move") {
		t.Fatal(message)
	}
	for i := range shared {
		ref := capi("Machine", fmt.Sprintf("shared-%d", i))
		if made := f.dst.get(ref) != nil; made != (i <= held) {
			t.Errorf("%s is on the target: %t", ref, made)
		}
	}
}
