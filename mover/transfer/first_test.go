package transfer

import (
	"net/http"
	"strings"
	"testing"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// Of two moves of the same clusters that begin at the same time, the one that gets the first root gets the others: nothing is asked about
// them before that.
func TestTheFirstRootDecidesWhoseMoveItIs(t *testing.T) {
	api := newFakeAPI(t)
	var roots []pause.Root
	for _, name := range []string{"a", "b", "c"} {
		ref := capi("Cluster", name)
		roots = append(roots, pause.Root{Ref: ref, UID: api.put(ref, obj{})})
	}
	mark := hold.ByMove("fleet/one/1", "log")
	held := func(root pause.Root) bool {
		return api.get(root.Ref).GetAnnotations()[object.MoveAnnotation] == mark.Holder
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
