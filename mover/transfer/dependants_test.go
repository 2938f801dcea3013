package transfer

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

func ownedBy(ref object.Ref, uid types.UID) obj {
	return obj{"metadata": obj{"ownerReferences": []any{obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": ref.Kind, "name": ref.Name, "uid": string(uid)}}}}
}

// An object that is created on the source after Verified, below an object that moves, would be removed with its owner:
// the move stops, and continues once nothing can be lost.
func TestWhatComesAfterVerifiedIsNotLost(t *testing.T) {
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "late"}
	for name, c := range map[string]struct {
		late  object.Ref
		solve func(f *fakes)
	}{
		"let go":          {secret, func(f *fakes) { f.src.merge(secret, obj{"metadata": obj{"ownerReferences": nil}}) }},
		"deleted":         {secret, func(f *fakes) { f.src.drop(secret) }},
		"machine deleted": {capi("Machine", "late"), func(f *fakes) { f.src.drop(capi("Machine", "late")) }},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			f.src.put(c.late, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
			message, next := f.step()
			f.stranded(message, next, c.late.String(), f.cluster.String(), "owner reference")
			f.there(f.src, c.late)
			f.there(f.src, f.cluster)
			f.there(f.src, f.machine)
			c.solve(f)
			f.run(mover.AwaitAwake)
			if f.src.get(f.cluster) != nil || f.src.get(f.machine) != nil {
				t.Error("the source was not emptied")
			}
		})
	}
}

// Kinds of which the plan has nothing are not looked at before each level. What was found there stops every later try too.
func TestWhatIsOfAnotherKindIsLookedForAgain(t *testing.T) {
	late := object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "DevMachine", Namespace: "fleet", Name: "late"}
	f := moved(t, mover.Verified{})
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete && f.src.get(late) == nil {
			f.src.put(late, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
		}
	}
	for range 3 {
		message, next := f.step()
		f.stranded(message, next, late.String())
		f.there(f.src, f.cluster)
	}
	f.src.hook = nil
	f.src.drop(late)
	f.run(mover.AwaitAwake)
}

// What is there before the move, and would be lost in the same way, is an error of the preflight.
func TestDependantsThatStayAreRefused(t *testing.T) {
	cluster := object.Observed{Ref: capi("Cluster", "a"), UID: "c", Cluster: &object.ClusterFacts{}}
	labelled := object.Observed{Ref: object.Ref{Group: "example.com", Kind: "Tool", Namespace: "fleet", Name: "labelled"}, UID: "s", Movable: true}
	below := object.Observed{Ref: object.Ref{Kind: "Secret", Namespace: "fleet", Name: "below"}, UID: "b", Owners: []object.Owner{{Ref: labelled.Ref, UID: "s"}}}
	w := &snapshot{objects: []object.Observed{cluster, labelled, below}}
	p := &scope{members: mover.Select(w.objects, mover.Selection{Namespace: "fleet", All: true}), world: w}
	found, err := p.checkDependants(t.Context())
	if err != nil || len(found) != 1 || found[0].Severity != mover.Error || found[0].Field != below.Ref.String() {
		t.Errorf("%v, %+v", err, found)
	}
}

// It is seen between two levels too, and before Verified the move is rolled back.
func TestDependantsAreLookedForAgain(t *testing.T) {
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "late"}
	f := moved(t, mover.Verified{})
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete && f.src.get(secret) == nil {
			f.src.put(secret, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
		}
	}
	message, next := f.step()
	f.stranded(message, next, secret.String())
	f.there(f.src, f.cluster)

	before := moved(t, mover.AllCreated{})
	before.src.put(secret, ownedBy(before.machine, before.src.get(before.machine).GetUID()))
	before.step()
	if before.state.Phase != mover.PhaseRollingBack || !strings.Contains(before.state.RollbackCause, secret.String()) {
		t.Errorf("%s: %q", before.state.Phase, before.state.RollbackCause)
	}
}

// A tool removes the pause while a level of many objects is deleted: at most one chunk is deleted before the pause is
// set again.
func TestThePauseIsCheckedInsideALevel(t *testing.T) {
	f := moved(t, mover.Verified{})
	uid := f.src.get(f.cluster).GetUID()
	for i := range 3 * deleteChunk {
		ref := capi("Machine", fmt.Sprintf("a-%04d", i+2))
		f.state.Plan = append(f.state.Plan, mover.Item{Ref: ref, Version: "v1beta2", UID: f.src.put(ref, ownedBy(f.cluster, uid)), Level: 1, Cluster: "a"})
		f.state.Created[ref] = f.dst.put(ref, obj{})
	}
	unpaused, lifted := 0, false
	f.src.hook = func(r *http.Request) {
		if r.Method != http.MethodDelete {
			return
		}
		f.src.mu.Lock()
		defer f.src.mu.Unlock()
		spec, _ := f.src.objects[kindOf(f.cluster).collection("fleet")+"/a"]["spec"].(obj)
		if !lifted {
			lifted, spec["paused"] = true, false
		}
		if spec != nil && spec["paused"] != true {
			unpaused++
		}
	}
	f.step()
	if f.src.get(f.machine) != nil || unpaused == 0 || unpaused > deleteChunk {
		t.Errorf("%d objects were deleted while the Cluster was not paused, and a chunk has %d", unpaused, deleteChunk)
	}
}

func TestRootsAbove(t *testing.T) {
	roots := []pause.Root{{Ref: capi("Cluster", "a")}, {Ref: capi("Cluster", "b")}, {Ref: capi("ClusterClass", "k")}}
	got := rootsAbove(roots, []mover.Item{{Ref: capi("Machine", "a-1"), Cluster: "a"}})
	if len(got) != 2 || got[0].Ref.Name != "a" || got[1].Ref.Name != "k" {
		t.Errorf("%v", got)
	}
}

// The looks of a large move grow with it, and so does the time between them. The pause of few Clusters is asked for before a chunk.
func TestChecksOfALargeMove(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: lookEvery, time.Second: lookEvery, time.Minute: lookShare * time.Minute} {
		if got := new(Transfer).lookAfter(took); got != want {
			t.Errorf("after a look that took %s the next one comes after %s, want %s", took, got, want)
		}
	}
	const clusters, each = 1000, 10
	var roots []pause.Root
	var items []mover.Item
	for i := range clusters {
		roots = append(roots, pause.Root{Ref: capi("Cluster", fmt.Sprint(i))})
	}
	for j := range each {
		for i := range clusters {
			items = append(items, mover.Item{Ref: capi("Machine", fmt.Sprintf("%d-%d", i, j)), Cluster: fmt.Sprint(i)})
		}
	}
	for chunk := range slices.Chunk(byCluster(items), deleteChunk) {
		if got := len(rootsAbove(roots, chunk)); got > deleteChunk/each+1 {
			t.Errorf("%d Clusters are asked before a chunk of %d objects of which each Cluster has %d", got, len(chunk), each)
		}
	}
}
