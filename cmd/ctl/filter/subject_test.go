package filter

import (
	"slices"
	"testing"
	"time"

	"scute.dev/cmd/ctl/show"
	"scute.dev/eventlog"
	"scute.dev/mover"
)

// Who asked for a move of all clusters is found by each of them, though only the preflight says which ones they are.
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
		about := subjects.Of(show.Event{Event: e, Aggregate: of})
		var got []string
		for _, cluster := range []string{"prod", "test"} {
			if f := (Filter{Cluster: cluster}); f.Match(show.Event{Event: e, Aggregate: of}, about) {
				got = append(got, cluster)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%T is shown for the clusters %q, want %q", c.event, got, c.want)
		}
	}
}
