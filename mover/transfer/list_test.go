package transfer

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestALookAtBothSidesKeepsLittle checks that the state of both sides in memory has only what a deletion needs.
func TestALookAtBothSidesKeepsLittle(t *testing.T) {
	f := moved(t, mover.Verified{})
	fields := []any{obj{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": obj{"f:spec": obj{}}}}
	for _, api := range []*fakeAPI{f.src, f.dst} {
		api.merge(f.cluster, obj{"metadata": obj{"managedFields": fields}, "spec": obj{"clusterNetwork": obj{"serviceDomain": "x"}}})
		api.merge(f.machine, obj{"metadata": obj{"managedFields": fields}})
	}
	if failed, err := f.transfer.Reach(t.Context(), f.state, mover.DeleteSource); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	look, err := f.transfer.listBoth(t.Context(), f.state, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(look.copies) != 2 || len(look.originals) != 2 {
		t.Errorf("%d copies and %d objects at the source, want 2 and 2", len(look.copies), len(look.originals))
	}
	for ref, u := range look.roots {
		spec, _ := u.Object["spec"].(obj)
		if len(u.GetManagedFields()) > 0 || u.Object["status"] != nil || spec["clusterNetwork"] != nil {
			t.Errorf("%s keeps unused fields: %v", ref, u.Object)
		}
	}
	if spec, _ := look.roots[f.cluster].Object["spec"].(obj); spec["paused"] != true || len(look.roots) != 1 {
		t.Errorf("roots = %v, want only the Cluster, paused", look.roots)
	}
	have, err := f.transfer.listPresent(t.Context(), f.transfer.Source, f.state.Plan)
	if err != nil {
		t.Fatal(err)
	}
	for ref, u := range have {
		if len(u.GetManagedFields()) > 0 {
			t.Errorf("%s has managed fields, which are not used", ref)
		}
	}
}

// TestAPreflightDoesNotWaitForEachAnswer checks that independent requests of a preflight are concurrent, because the
// API servers may be distant.
func TestAPreflightDoesNotWaitForEachAnswer(t *testing.T) {
	for name, paths := range map[string][]string{
		"the source is looked at, the target reached": {"source /machines", "target /namespaces/kube-system"},
		"what the target serves, its definitions":     {"target /namespaces/kube-system", "target /customresourcedefinitions", "target /apis"},
		"what the target allows and has":              {"target /selfsubjectrulesreviews", "target /namespaces/fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{Holder: "one"})
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
			f.dst.drop(f.cluster)
			f.dst.drop(f.machine)
			f.listBoth(paths)
			if f.step(); f.state.Phase != mover.PhasePausing {
				t.Errorf("phase = %s, findings %+v", f.state.Phase, f.state.Findings)
			}
		})
	}
}

// TestBothSidesAreReadAtOnce checks that the reads before the creation of copies, and those of the verification, are
// concurrent.
func TestBothSidesAreReadAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		last  mover.Event
		paths []string
		want  mover.Phase
	}{
		"before the creation": {mover.CreateStarted{}, []string{"target /namespaces/fleet", "source /machines/a-1", "source /clusters/a"}, mover.PhaseCreating},
		"the verification":    {mover.AllCreated{}, []string{"target /machines/a-1", "source /machines/a-1", "source /secrets"}, mover.PhaseVerified},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.AllAcknowledged{})
			f.controllers()
			f.transfer.acknowledged = map[object.Ref]bool{f.cluster: true, f.machine: true}
			f.run(mover.CreateCopies)
			made := map[object.Ref]types.UID{f.cluster: f.dst.get(f.cluster).GetUID(), f.machine: f.dst.get(f.machine).GetUID()}
			f.apply(mover.CreateStarted{})
			if c.last == (mover.AllCreated{}) {
				f.apply(mover.Created{Objects: made})
				f.apply(mover.AllCreated{})
			}
			f.listBoth(c.paths)
			if message, _ := f.step(); f.state.Phase != c.want {
				t.Errorf("phase = %s, message %s", f.state.Phase, message)
			}
		})
	}
}

// TestTheListsOfAReadingDoNotWaitForEachOther checks that all lists of one read are concurrent.
func TestTheListsOfAReadingDoNotWaitForEachOther(t *testing.T) {
	f := moved(t, mover.Verified{})
	if failed, err := f.transfer.Reach(t.Context(), f.state, mover.DeleteSource); failed != nil || err != nil {
		t.Fatal(failed, err)
	}
	var want []wanted
	var paths []string
	for _, k := range fakeKinds() {
		typ, moves := f.transfer.sourceTypes[object.Ref{Group: k.group, Kind: k.kind}.GroupKind()]
		if !moves || !k.namespaced {
			continue
		}
		paths = append(paths, "source /"+k.plural)
		for i := range maxSingleReads + 1 {
			want = append(want, wanted{typ, object.Ref{Group: k.group, Kind: k.kind, Namespace: "fleet", Name: fmt.Sprint(i)}})
		}
	}
	if len(paths) < 7 {
		t.Fatalf("only %v are listed", paths)
	}
	f.listBoth(paths)
	err := readEach(t.Context(), f.transfer, f.transfer.Source, want, func(context.Context, int, *unstructured.Unstructured) (struct{}, error) {
		return struct{}{}, nil
	}, func([]struct{}) error { return nil })
	if err != nil {
		t.Error(err)
	}
}

// listBoth delays the first response for each path until requests for all of them have arrived.
func (f *fakes) listBoth(paths []string) {
	var all sync.WaitGroup
	all.Add(len(paths))
	together := make(chan struct{})
	go func() { all.Wait(); close(together) }()
	for side, api := range map[string]*fakeAPI{"source": f.src, "target": f.dst} {
		first := make(map[string]*sync.Once)
		for _, path := range paths {
			if on, end, _ := strings.Cut(path, " "); on == side {
				first[end] = &sync.Once{}
			}
		}
		api.hook = func(r *http.Request) {
			for end, once := range first {
				if !strings.HasSuffix(r.URL.Path, end) {
					continue
				}
				once.Do(func() {
					all.Done()
					select {
					case <-together:
					case <-time.After(time.Minute):
						f.t.Errorf("%s %s is answered before the others of %v are asked", side, end, paths)
					}
				})
			}
		}
	}
}
