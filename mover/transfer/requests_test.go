package transfer

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestRequestsOfAMove limits the requests of a move to both API servers: in total for each of 200 objects, and the
// reads, whose number does not depend on the objects.
func TestRequestsOfAMove(t *testing.T) {
	// 1 creation, 1 removal of the annotation, 1 deletion, 0.5 releases, and a dry run of each
	// except the removal of the annotation; the rest is a fixed cost of the move.
	const most = 6.65
	f := moved(t, mover.Claimed{Holder: "one"})
	f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}, "spec": obj{"paused": nil}})
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	addMany(f, 100)
	var mu sync.Mutex
	f.state.Spec.Acknowledge = mover.Duration(time.Hour)
	f.transfer.listInterval = time.Hour // independent of the speed of this machine
	made := make(map[string]int)
	for side, api := range map[string]*fakeAPI{"source": f.src, "target": f.dst} {
		api.hook = func(r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			made[request(side, r)]++
		}
	}
	for step := 0; mover.Next(f.state) != mover.None && step < 40; step++ {
		f.controllers()
		f.now = f.now.Add(time.Second)
		f.step()
	}
	if f.state.Phase != mover.PhaseSucceeded {
		t.Fatalf("phase = %s, failure %q, rollback cause %q", f.state.Phase, f.state.TransientFailure.Message, f.state.RollbackCause)
	}
	const mostReads = 127
	total, reads := 0, 0
	for _, what := range slices.Sorted(maps.Keys(made)) {
		t.Logf("%4d %s", made[what], what)
		total += made[what]
		if strings.Contains(what, " GET ") {
			reads += made[what]
		}
	}
	if reads > mostReads {
		t.Errorf("%d reads, want at most %d", reads, mostReads)
	}
	if got := float64(total) / float64(f.state.Counts.Objects); got > most {
		t.Errorf("%.2f requests for each object, want at most %.1f", got, most)
	}
}

// TestACopyThatIsThereIsNotWrittenAgain checks that existing copies are not written again after a crash: otherwise a
// process that crashes after each write would never finish.
func TestACopyThatIsThereIsNotWrittenAgain(t *testing.T) {
	f := moved(t, mover.AllCreated{})
	told := f.events
	f.state, f.events = &mover.State{}, nil
	for _, e := range told {
		switch e := e.(type) {
		case mover.Created, mover.AllCreated: // the process crashed before these events
			continue
		case mover.PlanDrafted:
			for i, item := range e.Items {
				hash, err := mover.ContentHash(f.src.get(item.Ref))
				if err != nil {
					t.Fatal(err)
				}
				e.Items[i].Hash = hash
			}
		}
		f.apply(e)
	}
	f.apply(mover.CreateStarted{})
	fields := []any{obj{"manager": "capi-topology", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": obj{"f:spec": obj{}}}}
	for _, api := range []*fakeAPI{f.src, f.dst} {
		api.merge(f.machine, obj{"metadata": obj{"managedFields": fields}})
	}
	made := requests(f.dst)
	f.run(mover.VerifyCopies)
	for _, r := range made() {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("unexpected write %s: all copies exist", r)
		}
	}
}

// TestASmallPlanIsReadAtOnce checks that a small plan is read once before its levels are created, although its Secrets
// are at several levels.
func TestASmallPlanIsReadAtOnce(t *testing.T) {
	f := moved(t, mover.AllAcknowledged{})
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	items := []mover.Item{{Ref: f.cluster, Version: "v1beta2", Cluster: "a"}, {Ref: f.machine, Version: "v1beta2", Level: 1, Cluster: "a"}}
	for i := range 4 * (maxSingleReads + 1) {
		ref := object.Ref{Kind: "Secret", Namespace: "fleet", Name: fmt.Sprintf("s-%02d", i)}
		f.src.put(ref, obj{"metadata": obj{"labels": obj{"cluster.x-k8s.io/cluster-name": "a"}}})
		items = append(items, mover.Item{Ref: ref, Version: "v1", Level: 1 + i%4, Cluster: "a"})
	}
	for i := range items {
		u := f.src.get(items[i].Ref)
		hash, err := mover.ContentHash(u)
		if err != nil {
			t.Fatal(err)
		}
		items[i].UID, items[i].Hash, items[i].ResourceVersion = u.GetUID(), hash, u.GetResourceVersion()
	}
	f.apply(mover.PlanDrafted{First: true, Items: items})
	f.apply(mover.Planned{})
	made := requests(f.src)
	f.run(mover.VerifyCopies)
	lists := 0
	for _, r := range made() {
		if r == "GET secrets" {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("Secrets were listed %d times, want once", lists)
	}
}

// request returns a description of a request to a side.
func request(side string, r *http.Request) string {
	name := side + " " + r.Method
	if r.URL.Query().Get("dryRun") != "" {
		name += " (dry run)"
	}
	if r.Method == http.MethodGet {
		name += " " + r.URL.Path
	}
	return name
}

// controllers sets condition Paused of each Machine and of the Cluster on both sides, as the controllers of Cluster API
// do.
func (f *fakes) controllers() {
	for _, api := range []*fakeAPI{f.src, f.dst} {
		cluster := api.get(f.cluster)
		if cluster == nil {
			continue
		}
		status := "False"
		if object.Observe(cluster).Cluster.Paused {
			status = "True"
		}
		for _, ref := range append(api.named("Machine"), f.cluster) {
			api.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": status}}}})
		}
	}
}

// named returns the objects of a kind of Cluster API.
func (f *fakeAPI) named(kind string) (refs []object.Ref) {
	f.mu.Lock()
	defer f.mu.Unlock()
	prefix := kindOf(capi(kind, "")).collection("fleet") + "/"
	for at := range f.objects {
		if name, ok := strings.CutPrefix(at, prefix); ok {
			refs = append(refs, capi(kind, name))
		}
	}
	return refs
}
