package page_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"scute.dev/aggregate"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
	"scute.dev/ui/feed"
	"scute.dev/ui/uitest"
)

func waitingFor(ref object.Ref) []pause.PendingObject {
	return []pause.PendingObject{{Ref: ref, Reason: "condition Paused is False"}}
}

// appendPause appends the events of a Pause of a cluster.
func appendPause(t *testing.T, log *eventlog.Log, name string, cluster object.Ref, last ...request.Event) {
	t.Helper()
	root := aggregate.Root[request.Event, *request.State]{
		Log: log, Catalog: request.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindPause, ID: "fleet/" + name + "/1"},
		Actor: "test", Links: request.Links, State: &request.State{},
	}
	for _, e := range append([]request.Event{
		request.Requested{Spec: request.Spec{Namespace: cluster.Namespace, Name: name, Clusters: []string{cluster.Name}}},
		request.Claimed{Holder: "test"},
		request.Intended{Roots: []pause.Root{{Ref: cluster, UID: "1"}}},
		request.Paused{Roots: []object.Ref{cluster}},
		request.Waiting{Pending: request.Pending{Objects: waitingFor(cluster), Total: 1}},
	}, last...) {
		if err := root.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPauseOfACluster checks that pages of a cluster link to the Pause that holds it until it is released, and that the
// page of the Pause offers to delete it until then.
func TestPauseOfACluster(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	uitest.Histories(t, log, root, "quorum-lost")
	uitest.Fill(t, f, log)
	before := f.Commits.Head()
	var cluster object.Ref
	if err := f.Now(func(w *feed.Snapshot) error {
		o, err := feed.Find[*remediation.Fold](w, eventlog.KindRemediation, "fleet/quorum-lost/1")
		cluster = object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: o.State.Owner.Namespace, Name: o.State.Owner.Cluster}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	appendPause(t, log, "still", cluster)
	uitest.Fill(t, f, log)
	holds := f.Commits.Head()
	appendPause(t, log, "over", cluster, request.ReleaseRequested{}, request.Restored{}, request.Released{})
	uitest.Fill(t, f, log)
	s := site(t, f)
	s.Actions = true
	for _, address := range []string{"/owner?id=fleet/quorum-lost/1", "/fleet?"} {
		if now := show(t, s, address); !strings.Contains(now, `/pause?id=fleet%2Fstill%2F1"`) || strings.Contains(now, "%2Fover%2F1") {
			t.Errorf("%s links to other Pauses:\n%s", address, now)
		}
		if past := show(t, s, fmt.Sprintf("%s&at=%d", address, before)); strings.Contains(past, "/pause?") {
			t.Errorf("%s links to a Pause before it existed", address)
		}
	}
	for address, offered := range map[string]bool{"id=fleet/still/1": true, fmt.Sprintf("id=fleet/still/1&at=%d", holds): false, "id=fleet/over/1": false} {
		if got := strings.Contains(show(t, s, "/pause?"+address), "/act?do=delete"); got != offered {
			t.Errorf("%s offers to delete the Pause: %t", address, got)
		}
	}
}

// TestPausesThatWait checks that the page Now lists a Pause without all acknowledgements under what waits for a human,
// and one that holds its clusters under what is in progress.
func TestPausesThatWait(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	prod := object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "prod"}
	for name, last := range map[string]request.Event{"late": request.TimedOut{Objects: waitingFor(prod), Total: 1}, "well": request.AllAcknowledged{Objects: 1}} {
		appendPause(t, log, name, prod, last)
	}
	uitest.Fill(t, f, log)
	s := site(t, f)
	for _, name := range []string{"late", "well"} {
		if link := `href="/pause?id=fleet%2F` + name + `%2F1"`; !strings.Contains(show(t, s, "/"), link) {
			t.Errorf("the page Now does not contain %s", link)
		}
	}
	now := regexp.MustCompile(`<[^>]+>`).ReplaceAllString(show(t, s, "/"), " ")
	waits, busy, found := strings.Cut(now, " In progress ")
	if !found || !strings.Contains(waits, "fleet/late") || !strings.Contains(waits, "condition Paused is False") || !strings.Contains(waits, "describe pause late ") ||
		strings.Contains(waits, "fleet/well") || !strings.Contains(busy, "fleet/well") {
		t.Errorf("the page Now has\n%s", now)
	}
}
