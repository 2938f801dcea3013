package kit

import (
	"slices"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/remediator"
	"scute.dev/view"
)

// TestMoveOfAllClusters checks that the request of a move of all clusters matches each cluster, although the clusters
// are known only after the preflight.
func TestMoveOfAllClusters(t *testing.T) {
	of := eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/all/1"}
	catalog, subjects := mover.NewCatalog(), NewSubjects()
	for i, c := range []struct {
		event mover.Event
		want  []string // of the clusters prod and test
	}{
		{mover.Requested{Spec: mover.Spec{Namespace: "fleet", All: true}}, []string{"prod", "test"}},
		{mover.Claimed{Holder: "a"}, []string{"prod", "test"}},
		{mover.PreflightPassed{Clusters: []string{"prod"}}, []string{"prod"}},
		{mover.Succeeded{}, []string{"prod"}},
	} {
		e, err := catalog.Encode(c.event)
		if err != nil {
			t.Fatal(err)
		}
		e.Time = time.Date(2026, 7, 30, 12, 0, i, 0, time.UTC)
		told := subjects.addTo([]Event{{Event: e, Aggregate: of, Line: lineOf(of.Kind, e)}})[0]
		var got []string
		for _, cluster := range []string{"prod", "test"} {
			if f := (Filter{Cluster: cluster}); f.Match(told) {
				got = append(got, cluster)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%T matches the clusters %q, want %q", c.event, got, c.want)
		}
	}
}

// TestFactsNameTheirMachine checks that facts have the name of their machine, which most events of a remediation do not
// contain. It is unknown if the owner's first events are missing and several remediations are in progress.
func TestFactsNameTheirMachine(t *testing.T) {
	of := eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: "fleet/cp/1"}
	one, two := remediator.Subject{Name: "m1", UID: "1"}, remediator.Subject{Name: "m2", UID: "2"}
	events := []remediator.Event{
		remediator.Registered{Owner: remediator.Owner{Cluster: "a"}},
		remediator.MachineMarked{Machine: one},
		remediator.MachineMarked{Machine: two},
		remediator.SurgeRequested{Machine: one, Method: remediator.Surge},
		remediator.ScaleRaised{},
		remediator.SurgeRequested{Machine: two, Method: remediator.Surge},
		remediator.ScaleRaised{},
		remediator.Continued{Machine: one},
		remediator.ReplacementReady{Replacement: remediator.Subject{Name: "m3"}},
		remediator.Succeeded{},
		remediator.EtcdReported{},
	}
	catalog := remediator.NewCatalog()
	for first, want := range map[int][]string{
		0: {"", "m1", "m2", "m1", "m1", "m2", "m2", "m1", "m1", "m1", ""},
		4: {"", "m2", "", "m1", "", "", ""},
	} {
		var got []string
		subjects := NewSubjects()
		for i, event := range events[first:] {
			e, err := catalog.Encode(event)
			if err != nil {
				t.Fatal(err)
			}
			e.Time = time.Date(2026, 7, 30, 12, 0, i, 0, time.UTC)
			told := Event{Event: e, Aggregate: of, Line: lineOf(of.Kind, e)}
			got = append(got, subjects.addTo([]Event{told})[0].Line.About)
		}
		if !slices.Equal(got, want) {
			t.Errorf("from event %d on: got %q, want %q", first, got, want)
		}
	}
}

// TestMachinesAreSorted checks that an event names its machines in the same order each time, so that two exports of a
// log are equal, although events store their objects in maps.
func TestMachinesAreSorted(t *testing.T) {
	line := view.Line{Objects: []object.Ref{{Kind: "Machine", Name: "m2"}, {Kind: "Cluster", Name: "c"}, {Kind: "Machine", Name: "m1"}}}
	e := NewSubjects().addTo([]Event{{Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/prod/1"}, Line: line}})[0]
	if got := e.Subject.Machines; !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("got %q", got)
	}
}
