package page_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/ui/uitest"
)

// TestALargeMove checks that the page of a move with 9,000 objects has a limited size, and that objects can be found by
// their cluster.
func TestALargeMove(t *testing.T) {
	facts := []mover.Event{mover.Requested{Spec: mover.Spec{Namespace: "fleet", Name: "large", All: true}}}
	var items []mover.Item
	for level := range 4 {
		for i := range 2250 {
			cluster := fmt.Sprintf("cluster-%03d", i%200)
			ref := object.Ref{Group: "cluster.x-k8s.io", Kind: "Machine", Namespace: "fleet", Name: fmt.Sprintf("%s-machine-%d-%d", cluster, level, i/200)}
			items = append(items, mover.Item{Ref: ref, UID: "u", Level: level, Cluster: cluster})
		}
	}
	first := true
	for some := range slices.Chunk(items, 500) {
		facts = append(facts, mover.PlanDrafted{First: first, Items: some})
		first = false
	}
	log, f, catalog, last := logtest.Open(t), uitest.Feed(t), mover.NewCatalog(), uint64(0)
	for _, fact := range facts {
		ev, err := catalog.Encode(fact)
		if err != nil {
			t.Fatal(err)
		}
		ev.Time = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		last = uitest.Append(t, log, eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/large/1"}, last, ev)
	}
	uitest.Fill(t, f, log)
	s := site(t, f)
	body := show(t, s, "/move?id=fleet/large/1")
	if len(body) > largest {
		t.Errorf("the page has %d bytes, want at most %d", len(body), largest)
	}
	if !strings.Contains(body, `Level 3 <span class="number">2250</span>`) || !strings.Contains(body, "more: choose a cluster") {
		t.Error("the page does not contain the number of objects")
	}
	if of := show(t, s, "/move?id=fleet/large/1&cluster=cluster-199"); strings.Count(of, "cluster-199-machine-") != 44 || strings.Contains(of, "cluster-000-machine-") {
		t.Errorf("the page of one cluster has %d of its objects, want 44 and no others", strings.Count(of, "cluster-199-machine-"))
	}
}
