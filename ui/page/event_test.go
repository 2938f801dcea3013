package page_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/ui/feed"
	"scute.dev/ui/uitest"
)

// TestCause checks that an event links to its cause in the same or an earlier commit, or says that there is none.
func TestCause(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	saved := uitest.SavedHistories(t, root, "decided-to-retry")[0]
	for i := range saved.Events[:4] {
		saved.Events[i].ID, saved.Events[i].Causation = fmt.Sprintf("event-%d", i), ""
	}
	saved.Events[1].Causation, saved.Events[2].Causation, saved.Events[3].Causation = "event-0", "event-1", "event-of-nobody"
	other := eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/other/1"}
	uitest.Append(t, log, saved.Aggregate, 0, saved.Events[0])
	uitest.Append(t, log, other, 0, saved.Events[0]) // the same ID in another aggregate
	uitest.Append(t, log, saved.Aggregate, 1, saved.Events[1:4]...)
	uitest.Fill(t, f, log)
	s := site(t, f)
	for address, want := range map[string]string{
		"/event?at=1":                           "<dd>no recorded cause",
		"/event?at=3":                           `<a href="/event?at=1&amp;n=0">1/0 `,
		"/event?at=3&n=1":                       `<a href="/event?at=3&amp;n=0">3/0 `,
		"/event?at=3&n=2":                       "<code>event-of-nobody</code>, an event of another resource",
		"/event":                                `<span class="kind">event</span> 3/0</h1>`,
		"/run?id=fleet/decided-to-retry/1&at=3": `href="/event?at=3&amp;n=2"`,
	} {
		if got := show(t, s, address); !strings.Contains(got, want) {
			t.Errorf("%s does not contain %s:\n%s", address, want, got)
		}
	}
	if _, _, err := s.Page("/event", url.Values{"at": {"3"}, "n": {"3"}}, false); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("event that does not exist: got error %v, want ErrNotFound", err)
	}
	if _, _, err := site(t, uitest.Feed(t)).Page("/event", nil, false); !errors.Is(err, feed.ErrNotFound) {
		t.Errorf("event of an empty log: got error %v, want ErrNotFound", err)
	}
}
