package transfer

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"scute.dev/mover"
)

// What both sides have is in memory while a level is deleted: no more of it than the deletion needs.
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
	look, err := f.transfer.bothSides(t.Context(), f.state, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(look.copies) != 2 || len(look.there) != 2 {
		t.Errorf("%d copies and %d objects at the source, want 2 and 2", len(look.copies), len(look.there))
	}
	for ref, u := range look.roots {
		spec, _ := u.Object["spec"].(obj)
		if len(u.GetManagedFields()) > 0 || u.Object["status"] != nil || spec["clusterNetwork"] != nil {
			t.Errorf("%s: %v", ref, u.Object)
		}
	}
	if spec, _ := look.roots[f.cluster].Object["spec"].(obj); spec["paused"] != true || len(look.roots) != 1 {
		t.Errorf("the look does not say that the Cluster is paused, or keeps more than that: %v", look.roots)
	}
	have, err := f.transfer.present(t.Context(), f.transfer.Source, f.transfer.types, f.state.Plan)
	if err != nil {
		t.Fatal(err)
	}
	for ref, u := range have {
		if len(u.GetManagedFields()) > 0 {
			t.Errorf("%s has its managed fields, although nobody applies to it", ref)
		}
	}
}

// A distant API server takes long to answer, however little it is asked. What does not depend on an answer does not wait for it.
func TestAPreflightDoesNotWaitForEachAnswer(t *testing.T) {
	for name, paths := range map[string][]string{
		"the source is looked at, the target reached": {"source /machines", "target /namespaces/kube-system"},
		"what the target serves, its definitions":     {"target /namespaces/kube-system", "target /customresourcedefinitions", "target /apis"},
		"what the target allows and has":              {"target /selfsubjectrulesreviews", "target /namespaces/fleet", "target /validatingwebhookconfigurations"},
		"what the source allows, and its webhooks":    {"source /selfsubjectrulesreviews", "source /validatingwebhookconfigurations"},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{Holder: "one"})
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
			f.dst.drop(f.cluster)
			f.dst.drop(f.machine)
			var all sync.WaitGroup
			all.Add(len(paths))
			together := make(chan struct{})
			go func() { all.Wait(); close(together) }()
			for side, api := range map[string]*fakeAPI{"source": f.src, "target": f.dst} {
				first := make(map[string]*sync.Once)
				for _, path := range paths {
					first[path] = &sync.Once{}
				}
				api.hook = func(r *http.Request) {
					for path, once := range first {
						if on, end, _ := strings.Cut(path, " "); on != side || !strings.HasSuffix(r.URL.Path, end) {
							continue
						}
						once.Do(func() {
							all.Done()
							select {
							case <-together:
							case <-time.After(10 * time.Second):
								t.Errorf("%s is answered before the others of %v are asked", path, paths)
							}
						})
					}
				}
			}
			if f.step(); f.state.Phase != mover.PhasePausing {
				t.Errorf("%s: %+v", f.state.Phase, f.state.Findings)
			}
		})
	}
}
