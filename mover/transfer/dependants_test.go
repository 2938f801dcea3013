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

// TestWhatComesAfterVerifiedIsNotLost checks that a move stops if an object is created below a moving object after
// verification, because it would be removed with its owner, and continues once nothing can be lost.
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
			f.checkStranded(message, next, c.late.String(), f.cluster.String(), "owner reference")
			f.checkExists(f.src, c.late)
			f.checkExists(f.src, f.cluster)
			f.checkExists(f.src, f.machine)
			c.solve(f)
			f.run(mover.AwaitResume)
			if f.src.get(f.cluster) != nil || f.src.get(f.machine) != nil {
				t.Error("the source was not emptied")
			}
		})
	}
}

// TestWhatIsOfAnotherKindIsLookedForAgain checks that a dependant of a kind that is not in the plan stops all further
// attempts, although such kinds are not listed before each level.
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
		f.checkStranded(message, next, late.String())
		f.checkExists(f.src, f.cluster)
	}
	f.src.hook = nil
	f.src.drop(late)
	f.run(mover.AwaitResume)
}

// TestDependantsThatStayAreRefused checks that the preflight refuses a move that would lose a dependant in this way.
func TestDependantsThatStayAreRefused(t *testing.T) {
	cluster := object.Observed{Ref: capi("Cluster", "a"), UID: "c", Cluster: &object.ClusterFacts{}}
	labelled := object.Observed{Ref: object.Ref{Group: "example.com", Kind: "Tool", Namespace: "fleet", Name: "labelled"}, UID: "s", Movable: true}
	below := object.Observed{Ref: object.Ref{Kind: "Secret", Namespace: "fleet", Name: "below"}, UID: "b", Owners: []object.Owner{{Ref: labelled.Ref, UID: "s"}}}
	w := &snapshot{objects: []object.Observed{cluster, labelled, below}}
	p := &scope{members: mover.Select(w.objects, mover.Selection{Namespace: "fleet", All: true}), snapshot: w}
	found, err := p.checkDependents(t.Context())
	if err != nil || len(found) != 1 || found[0].Severity != mover.Error || found[0].Field != below.Ref.String() {
		t.Errorf("error %v, findings %+v, want one error", err, found)
	}
}

// TestDependantsAreLookedForAgain checks that a new dependant is also found between two levels, and that it causes a
// rollback before verification.
func TestDependantsAreLookedForAgain(t *testing.T) {
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "late"}
	f := moved(t, mover.Verified{})
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodDelete && f.src.get(secret) == nil {
			f.src.put(secret, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
		}
	}
	message, next := f.step()
	f.checkStranded(message, next, secret.String())
	f.checkExists(f.src, f.cluster)

	before := moved(t, mover.AllCreated{})
	before.src.put(secret, ownedBy(before.machine, before.src.get(before.machine).GetUID()))
	before.step()
	if before.state.Phase != mover.PhaseRollingBack || !strings.Contains(before.state.RollbackCause, secret.String()) {
		t.Errorf("phase = %s, rollback cause %q", before.state.Phase, before.state.RollbackCause)
	}
}

// TestThePauseIsCheckedInsideALevel checks that at most one chunk of a level is deleted after a tool lifts the pause,
// before it is set again.
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
		t.Errorf("%d objects were deleted while the Cluster was not paused, want at most one chunk of %d", unpaused, deleteChunk)
	}
}

func TestRootsAbove(t *testing.T) {
	roots := []pause.Root{{Ref: capi("Cluster", "a")}, {Ref: capi("Cluster", "b")}, {Ref: capi("ClusterClass", "k")}}
	got := rootsAbove(roots, []mover.Item{{Ref: capi("Machine", "a-1"), Cluster: "a"}})
	if len(got) != 2 || got[0].Ref.Name != "a" || got[1].Ref.Name != "k" {
		t.Errorf("rootsAbove = %v, want a and k", got)
	}
}

// TestChecksOfALargeMove checks that the interval between two reads grows with their duration, and that each chunk
// needs a check of the pauses of few Clusters only.
func TestChecksOfALargeMove(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: listInterval, time.Second: listInterval, time.Minute: listShare * time.Minute} {
		if got := new(Transfer).listIntervalAfter(took); got != want {
			t.Errorf("lookAfter(%s) = %s, want %s", took, got, want)
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
			t.Errorf("%d Clusters are checked before a chunk of %d objects with %d objects of each Cluster", got, len(chunk), each)
		}
	}
}
