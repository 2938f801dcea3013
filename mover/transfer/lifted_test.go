package transfer

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// TestNothingIsDeletedBesideControllersThatWoke checks that if the pause of the source is lifted after verification,
// nothing is deleted until its controllers have acknowledged the pause again.
func TestNothingIsDeletedBesideControllersThatWoke(t *testing.T) {
	says := func(status string) obj {
		return obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": status}}}}
	}
	f := moved(t, mover.Verified{})
	f.src.merge(f.cluster, says("True"))
	f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
	f.src.merge(f.machine, says("False"))
	for range 2 {
		message, next := f.step()
		if !strings.Contains(message, "removed the pause") || !strings.Contains(next, "GitOps") {
			t.Errorf("message %q, next %q", message, next)
		}
		f.checkExists(f.src, f.machine)
		f.checkPaused(f.src, f.cluster, true)
	}
	f.src.merge(f.machine, says("True"))
	f.run(mover.AwaitResume)
	if f.src.get(f.machine) != nil || f.src.get(f.cluster) != nil {
		t.Error("the source was not emptied")
	}
	f.checkPaused(f.dst, f.cluster, false)
}

// TestASourceThatIsNotInOrderIsPausedAgain lifts the pause while a MachineSet creates a Machine. The move must stop
// with the source paused: otherwise the Machine would be created again after each removal. Nothing is deleted yet, so
// the source must not be annotated as being emptied.
func TestASourceThatIsNotInOrderIsPausedAgain(t *testing.T) {
	f := moved(t, mover.Verified{})
	late := capi("Machine", "late")
	for _, ref := range []object.Ref{f.cluster, f.machine} {
		f.src.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": "True"}}}})
	}
	f.src.merge(f.cluster, obj{"spec": obj{"paused": nil}})
	f.src.put(late, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
	f.step()
	f.checkPaused(f.src, f.cluster, true)
	message, next := f.step()
	f.checkStranded(message, next, late.String())
	if isEmptying(f.src.get(f.cluster)) {
		t.Error("the source is annotated as being emptied")
	}
	f.checkExists(f.src, f.machine)
	f.src.drop(late)
	f.run(mover.AwaitResume)
}

// TestAllClustersArePausedAgainAtOnce checks that one attempt pauses all Clusters again, even if one of them cannot be
// paused: the controllers of each Cluster that is not paused replace deleted machines.
func TestAllClustersArePausedAgainAtOnce(t *testing.T) {
	const clusters = 60
	for name, denied := range map[string]string{"all can be paused": "", "one cannot": "/clusters/c-07"} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			marks := obj{object.MoveAnnotation: moveID, object.LogAnnotation: logID}
			cluster := func(paused bool) obj {
				return obj{"metadata": obj{"annotations": marks}, "spec": obj{"paused": paused}}
			}
			var refs []object.Ref
			for i := range clusters {
				ref := capi("Cluster", fmt.Sprintf("c-%02d", i))
				uid := f.src.put(ref, cluster(false))
				f.state.Plan = append(f.state.Plan, mover.Item{Ref: ref, Version: "v1beta2", UID: uid, Cluster: ref.Name})
				f.state.Roots = append(f.state.Roots, pause.Root{Ref: ref, UID: uid})
				f.state.Created[ref] = f.dst.put(ref, cluster(true))
				refs = append(refs, ref)
			}
			f.src.deny = func(r *http.Request) string {
				if denied != "" && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, denied) {
					return "no"
				}
				return ""
			}
			message, _ := f.step()
			left := 0
			for _, ref := range refs {
				if !object.Observe(f.src.get(ref)).Cluster.Paused {
					left++
				}
			}
			want, says := 0, "c-00: 60 objects were not paused"
			if denied != "" {
				want, says = 1, "c-07"
			}
			if left != want || !strings.Contains(message, says) {
				t.Errorf("%d of %d Clusters are not paused, want %d; message %q, want %q in it", left, clusters, want, message, says)
			}
			f.checkExists(f.src, f.machine)
		})
	}
}

// TestThePauseIsAskedForAfterALongLook checks that the pause is verified again before the first deletion, because
// reading a large plan takes long.
func TestThePauseIsAskedForAfterALongLook(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.transfer.listInterval = 1 // each read takes longer
	f.src.hook = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			f.src.hook = nil
			f.src.merge(f.cluster, obj{"spec": obj{"paused": false}})
		}
	}
	if message, _ := f.step(); !strings.Contains(message, "removed the pause") {
		t.Errorf("message = %q, want the lifted pause", message)
	}
	f.checkExists(f.src, f.machine)
	f.checkPaused(f.src, f.cluster, true)
}

// TestAllOtherClustersAreResumed checks that other Clusters are resumed if a webhook denies one of them.
func TestAllOtherClustersAreResumed(t *testing.T) {
	const clusters = 60
	for name, end := range map[string]mover.Event{"at the source": mover.RollbackStarted{Reason: "requested by an operator"}, "on the target": mover.SourceEmptied{}} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			api := f.dst
			if _, back := end.(mover.RollbackStarted); back {
				api = f.src
				f.apply(mover.TargetCleared{})
			} else {
				f.src.drop(f.machine)
				f.src.drop(f.cluster)
			}
			f.apply(end)
			f.apply(mover.TargetCleared{})
			var refs []object.Ref
			for i := range clusters {
				ref := capi("Cluster", fmt.Sprintf("c-%02d", i))
				uid := api.put(ref, obj{"metadata": obj{"annotations": obj{object.MoveAnnotation: moveID, object.LogAnnotation: logID}}, "spec": obj{"paused": true}})
				f.state.Plan = append(f.state.Plan, mover.Item{Ref: ref, Version: "v1beta2", UID: uid, Cluster: ref.Name})
				f.state.Roots = append(f.state.Roots, pause.Root{Ref: ref, UID: uid})
				f.state.Created[ref] = uid
				refs = append(refs, ref)
			}
			api.deny = func(r *http.Request) string {
				if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/clusters/c-07") {
					return "c-07 is denied"
				}
				return ""
			}
			message, _ := f.step()
			var left []string
			for _, ref := range refs {
				if object.Observe(api.get(ref)).Cluster.Paused {
					left = append(left, ref.Name)
				}
			}
			if len(left) != 1 || !strings.Contains(message, "c-07 is denied") || f.state.Finished() {
				t.Errorf("%d of %d Clusters are paused: %v; phase %s, message %q", len(left), clusters, left, f.state.Phase, message)
			}
		})
	}
}

// TestClustersAreResumedOneAfterTheOther checks that a Cluster is resumed once the annotations are removed from its own
// objects and from templates, before those of other Clusters.
func TestClustersAreResumedOneAfterTheOther(t *testing.T) {
	f := moved(t, mover.Verified{})
	f.src.drop(f.machine)
	f.src.drop(f.cluster)
	f.apply(mover.SourceEmptied{})
	f.transfer.Workers = 1
	put := func(ref object.Ref, cluster string, spec obj) {
		mark := obj{"annotations": obj{object.MoveAnnotation: moveID, object.LogAnnotation: logID}}
		uid := f.dst.put(ref, obj{"metadata": mark, "spec": spec})
		f.state.Plan = append(f.state.Plan, mover.Item{Ref: ref, Version: "v1beta2", UID: uid, Cluster: cluster})
		f.state.Created[ref] = uid
		if pause.IsRoot(ref) {
			f.state.Roots = append(f.state.Roots, pause.Root{Ref: ref, UID: uid})
		}
	}
	for _, name := range []string{"c", "b"} {
		put(capi("Cluster", name), name, obj{"paused": true})
		put(capi("Machine", name+"-1"), name, nil)
		put(capi("MachineSet", name+"-2"), name, nil)
	}
	put(capi("ClusterClass", "base"), "", nil)
	put(capi("ClusterClass", "own"), "b", nil) // labeled with the name of the only Cluster that uses it
	put(capi("MachineSet", "orphan"), "none", nil)
	var order []string
	f.dst.hook = func(r *http.Request) {
		if r.Method == http.MethodPatch {
			order = append(order, path.Base(r.URL.Path))
		}
	}
	f.step()
	want := []string{"orphan", "base", "own", "a-1", "a", "b-1", "b-2", "b", "c-1", "c-2", "c"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Errorf("order of the writes (-want +got):\n%s", diff)
	}
	for _, ref := range []object.Ref{capi("ClusterClass", "own"), capi("ClusterClass", "base")} {
		if f.dst.get(ref).GetAnnotations()[object.MoveAnnotation] != "" {
			t.Errorf("%s still has the annotation", ref)
		}
	}
}

// TestRootsBesideADeniedOneAreResumed checks that a denied write to an object of a Cluster, or to a ClusterResourceSet,
// keeps only that one paused.
func TestRootsBesideADeniedOneAreResumed(t *testing.T) {
	set := object.Ref{Group: object.AddonsGroup, Kind: "ClusterResourceSet", Namespace: "fleet", Name: "s"}
	b, c := capi("Cluster", "b"), capi("Cluster", "c")
	for denied, stays := range map[string]object.Ref{"/machines/b-1": b, "/clusters/b": b, "/clusterresourcesets/s": set} {
		t.Run(denied, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			f.dst.identities = true
			f.dst.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: resourceSet().plural + "." + resourceSet().group},
				obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": ""}}})
			f.src.drop(f.machine)
			f.src.drop(f.cluster)
			f.apply(mover.SourceEmptied{})
			f.transfer.Workers = 1
			put := func(ref object.Ref, cluster string) {
				marks := obj{object.MoveAnnotation: moveID, object.LogAnnotation: logID, object.PausedAnnotation: ""}
				uid := f.dst.put(ref, obj{"metadata": obj{"annotations": marks}, "spec": obj{"paused": pause.IsCluster(ref)}})
				f.state.Plan = append(f.state.Plan, mover.Item{Ref: ref, Version: "v1beta2", UID: uid, Cluster: cluster})
				f.state.Created[ref] = uid
				if pause.IsRoot(ref) {
					f.state.Roots = append(f.state.Roots, pause.Root{Ref: ref, UID: uid})
				}
			}
			put(set, "")
			for _, name := range []string{"b", "c"} {
				put(capi("Machine", name+"-1"), name)
				put(capi("Cluster", name), name)
			}
			deny := true
			f.dst.deny = func(r *http.Request) string {
				if deny && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, denied) {
					return "it is denied"
				}
				return ""
			}
			if message, _ := f.step(); !strings.Contains(message, "it is denied") {
				t.Errorf("message = %q, want the denial", message)
			}
			for _, ref := range []object.Ref{f.cluster, set, b, c} {
				_, marked := f.dst.get(ref).GetAnnotations()[object.MoveAnnotation]
				if marked != (ref == stays) {
					t.Errorf("%s has the annotation: %v", ref, marked)
				}
			}
			deny = false
			if f.step(); f.dst.get(stays).GetAnnotations()[object.MoveAnnotation] != "" {
				t.Errorf("%s still has the annotation", stays)
			}
		})
	}
}
