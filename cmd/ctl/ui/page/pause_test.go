package page_test

import (
	"regexp"
	"strings"
	"testing"

	"scute.dev/aggregate"
	"scute.dev/cmd/ctl/ui/uitest"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// TestPausesThatWait: the page Now has a Pause that did not get all acknowledgements among what waits for a human, and one that holds
// its clusters among what is in progress.
func TestPausesThatWait(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	prod := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "prod"}
	silent := []pause.Wait{{Ref: prod, Why: "condition Paused is False"}}
	for name, last := range map[string]request.Event{"late": request.TimedOut{For: silent, Total: 1}, "well": request.AllAcknowledged{Objects: 1}} {
		root := aggregate.Root[request.Event, *request.State]{
			Log: log, Catalog: request.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindPause, ID: "fleet/" + name + "/1"},
			Actor: "test", Links: request.Links, State: &request.State{},
		}
		for _, e := range []request.Event{
			request.Requested{Spec: request.Spec{Namespace: "fleet", Name: name, Clusters: []string{"prod"}}},
			request.Claimed{Holder: "test"},
			request.Intended{Roots: []pause.Root{{Ref: prod, UID: "1"}}},
			request.Paused{Roots: []object.Ref{prod}},
			request.Waiting{Pending: request.Pending{For: silent, Total: 1}},
			last,
		} {
			if err := root.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	uitest.Fill(t, f, log)
	now := regexp.MustCompile(`<[^>]+>`).ReplaceAllString(show(t, site(t, f), "/"), " ")
	waits, busy, found := strings.Cut(now, " In progress ")
	if !found || !strings.Contains(waits, "fleet/late") || !strings.Contains(waits, "condition Paused is False") || !strings.Contains(waits, "describe pause late ") ||
		strings.Contains(waits, "fleet/well") || !strings.Contains(busy, "fleet/well") {
		t.Errorf("%s", now)
	}
}
