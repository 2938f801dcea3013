package page_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/ui/feed"
	"scute.dev/ui/uitest"
)

// fleetFeed returns a feed with the beginning of a saved history of an owner, repeated for n clusters.
func fleetFeed(t *testing.T, history string, events, n int) *feed.Feed {
	t.Helper()
	log, f := logtest.Open(t), uitest.Feed(t)
	saved := uitest.SavedHistories(t, root, history)
	saved[0].Events = saved[0].Events[:events]
	uitest.WriteInterleaved(t, log, saved)
	var one []eventlog.Record
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { one = append(one, r); return nil }); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		of := saved[0].Aggregate
		of.ID = fmt.Sprintf("fleet/%s-%d/1", history, i)
		for _, r := range one {
			seq := f.Commits.Head() + 1
			data := bytes.ReplaceAll(r.Data(), []byte(`"cluster":"c"`), fmt.Appendf(nil, `"cluster":"c-%d"`, i))
			if err := f.Apply(eventlog.NewRecord(seq, uitest.Stored(seq), of.Subject(), r.Header(), data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// TestALargeFleet checks that the pages of 1,000 clusters with 2,000 open remediations have a limited size, and that
// all of them are counted and can be reached.
func TestALargeFleet(t *testing.T) {
	s := site(t, fleetFeed(t, "two-of-five", 6, 1000))
	s.Actions = true
	for address, want := range map[string][]string{
		"/":                   {`In progress <span class="number">2000</span>`, "page 1 of 40", "busy=1"},
		"/?busy=39":           {"page 40 of 40", "busy=38", "two-of-five-0%2F1"},
		"/fleet":              {"2000 open remediations", "1000 clusters in the log", "page 1 of 20", "page=1"},
		"/fleet?page=1":       {"page 2 of 20", `href="/fleet">Previous`, "page=2"},
		"/fleet?page=1000000": {"page 20 of 20"},
	} {
		body := show(t, s, address)
		if len(body) > largest {
			t.Errorf("%s has %d bytes, want at most %d", address, len(body), largest)
		}
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not contain %q", address, text)
			}
		}
	}
}
