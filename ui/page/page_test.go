package page_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/pinned"
	"scute.dev/mover"
	"scute.dev/pause/request"
	"scute.dev/remediator"
	"scute.dev/ui/feed"
	"scute.dev/ui/page"
	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

const root = "../.."

// later returns the current time of the tests.
func later() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }

func site(t testing.TB, f *feed.Feed) *page.Site {
	t.Helper()
	flags := connect.New()
	flags.Dir, flags.Local = "logs", true
	s, err := page.New(f, &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: later}, Flags: flags}, "logs")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// show returns a page as a browser receives it.
func show(t testing.TB, s *page.Site, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	body, _, err := s.Page(u.Path, u.Query(), false)
	if err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	return string(body)
}

// TestPages compares pages of saved histories with golden files. Update them with UPDATE=1.
func TestPages(t *testing.T) {
	for name, c := range map[string]struct{ history, address string }{
		"alternatives": {"joined-by-alternatives", "/run?id=fleet/joined-by-alternatives/1"},
		"rolled-back":  {"rolled-back", "/run?id=fleet/rolled-back/1&task=b"},
		"decided":      {"decided-to-retry", "/run?id=fleet/decided-to-retry/1"},
		"paused":       {"decided-to-retry", "/?at=6"},
		"move":         {"target-wiped", "/move?id=fleet/target-wiped/1"},
		"move-creates": {"moved-back", "/move?id=fleet/moved-back/1&at=12"},
		"surge":        {"two-of-five", "/owner?id=fleet/two-of-five/1&at=4"},
		"quorum-lost":  {"quorum-lost", "/owner?id=fleet/quorum-lost/1"},
		"mass-failure": {"mass-failure", "/fleet?at=2"},
		"limits":       {"mass-failure", "/fleet?at=4"},
		"facts":        {"power-cycled", "/facts?kind=remediation&text=reboot"},
		"pause-late":   {"timed-out", "/pause?id=fleet/timed-out/1&at=2"},
		"pause-silent": {"timed-out", "/pause?id=fleet/timed-out/1"},
		"pause":        {"killed-while-releasing", "/pause?id=fleet/killed-while-releasing/1"},
		"event":        {"rolled-back", "/event?at=3&n=1"},
	} {
		t.Run(name, func(t *testing.T) {
			log, f := logtest.Open(t), uitest.Feed(t)
			uitest.Histories(t, log, root, c.history)
			uitest.Fill(t, f, log)
			pinned.Lines(t, name, 0, strings.Split(show(t, site(t, f), c.address), "\n"))
		})
	}
}

// TestFactsHoldUpNoPage checks that searching the log does not deadlock while another page holds the present state.
func TestFactsHoldUpNoPage(t *testing.T) {
	f := uitest.Feed(t)
	log := logtest.OpenIn(t, t.TempDir())
	uitest.Histories(t, log, root, "rolled-back")
	uitest.Fill(t, f, log)
	s := site(t, f)
	err := f.Now(func(*feed.Snapshot) error {
		if now := show(t, s, "/facts?text=rollback"); !strings.Contains(now, "rollback started") {
			t.Errorf("the search has no results:\n%s", now)
		}
		return f.At(2, func(*feed.Snapshot) error {
			show(t, s, "/facts?text=rollback&at=1")
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// TestEveryMoment checks that every page of all saved histories can be rendered at moments from the first commit to the
// last.
func TestEveryMoment(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	uitest.Histories(t, log, root)
	uitest.Fill(t, f, log)
	s := site(t, f)
	for _, address := range addresses(t, f) {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		id := u.Query().Get("id")
		for seq := uint64(1); seq <= f.Commits.Head(); seq += 29 {
			q := u.Query()
			q.Set("at", time.Time.Format(uitest.Stored(seq), time.RFC3339))
			body, at, err := s.Page(u.Path, q, false)
			if at != seq || err != nil && id == "" {
				t.Fatalf("%s at %d: %d %v", address, seq, at, err)
			}
			if err == nil && !strings.Contains(string(body), "</html>") {
				t.Fatalf("%s at %d is incomplete", address, seq)
			}
		}
	}
}

// addresses returns the addresses of all pages of a log.
func addresses(t testing.TB, f *feed.Feed) []string {
	t.Helper()
	list := []string{"/", "/fleet", "/facts", "/event"}
	for seq := uint64(1); seq <= f.Commits.Head(); seq += 13 {
		list = append(list, fmt.Sprintf("/event?at=%d", seq))
	}
	seen := make(map[eventlog.Aggregate]bool)
	err := f.Commits.Replay(0, f.Commits.Head(), func(r eventlog.Record) error {
		path := map[eventlog.Kind]string{eventlog.KindRun: "/run", eventlog.KindMove: "/move", eventlog.KindPause: "/pause", eventlog.KindRemediation: "/owner"}[r.Aggregate.Kind]
		if path != "" && !seen[r.Aggregate] {
			seen[r.Aggregate] = true
			list = append(list, path+"?"+url.Values{"id": {r.Aggregate.ID}}.Encode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestHostileLog checks that markup in any string of the log is escaped.
func TestHostileLog(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	histories := uitest.SavedHistories(t, root)
	spoiled := 0
	for _, h := range histories {
		h.Aggregate.ID += uitest.Markup
		for i := range h.Events {
			h.Events[i].Actor += uitest.Markup
			spoiled += addMarkup(t, h.Aggregate.Kind, &h.Events[i])
		}
	}
	if spoiled < 1000 {
		t.Fatalf("got %d strings with markup, want at least 1000", spoiled)
	}
	uitest.WriteInterleaved(t, log, histories)
	uitest.Fill(t, f, log)
	s := site(t, f)
	shown := 0
	for _, address := range addresses(t, f) {
		for _, at := range []string{"", "&at=100", "&at=400"} {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			q, err := url.ParseQuery(u.RawQuery + at) // the first of several values counts
			if err != nil {
				t.Fatal(err)
			}
			q.Set("text", uitest.Markup)
			body, _, err := s.Page(u.Path, q, false)
			if err != nil {
				body = s.Error(err)
			}
			if strings.Contains(string(body), "<hostile") || strings.Contains(string(body), `"><`+"hostile") {
				t.Errorf("%s%s contains unescaped markup of the log", address, at)
			}
			if strings.ContainsAny(string(body), "\u202e\u009b") {
				t.Errorf("%s%s contains control characters or characters that change the direction of text", address, at)
			}
			shown += strings.Count(string(body), "&lt;hostile")
		}
	}
	if shown < 1000 {
		t.Errorf("the escaped markup was found %d times, want at least 1000: is the log still read?", shown)
	}
}

// addMarkup adds markup to each string of an event for which the event can still be decoded.
func addMarkup(t *testing.T, kind eventlog.Kind, ev *eventlog.Event) (n int) {
	t.Helper()
	var data any
	if err := json.Unmarshal(ev.Data, &data); err != nil {
		t.Fatal(err)
	}
	var change func(v any) any
	whole := func() bool {
		raw, err := json.Marshal(data)
		if err != nil {
			return false
		}
		tried := *ev
		tried.Data = raw
		return isReadable(kind, tried)
	}
	change = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for name, below := range v {
				s, isText := below.(string)
				if !isText {
					v[name] = change(below)
				} else if v[name] = s + uitest.Markup; !whole() {
					v[name] = s
				} else {
					n++
				}
			}
		case []any:
			for i, below := range v {
				s, isText := below.(string)
				if !isText {
					v[i] = change(below)
				} else if v[i] = s + uitest.Markup; !whole() {
					v[i] = s
				} else {
					n++
				}
			}
		}
		return v
	}
	data = change(data)
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	ev.Data = raw
	return n
}

func isReadable(kind eventlog.Kind, ev eventlog.Event) bool {
	var err error
	switch kind {
	case eventlog.KindRun:
		_, err = workflow.NewCatalog().Decode(ev)
	case eventlog.KindMove:
		_, err = mover.NewCatalog().Decode(ev)
	case eventlog.KindPause:
		_, err = request.NewCatalog().Decode(ev)
	default:
		_, err = remediator.NewCatalog().Decode(ev)
	}
	return err == nil
}

// TestActsAreOfThePresent checks that actions are offered only for the present, and only if they are allowed.
func TestActsAreOfThePresent(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	saved := uitest.SavedHistories(t, root, "decided-to-retry")
	saved[0].Events = saved[0].Events[:18] // the run waits for a decision
	uitest.WriteInterleaved(t, log, saved)
	uitest.Fill(t, f, log)
	s, head := site(t, f), fmt.Sprint(f.Commits.Head())
	pages := []string{"/?", "/run?id=fleet/decided-to-retry/1"}
	for _, address := range pages {
		if strings.Contains(show(t, s, address), "/act?") {
			t.Errorf("%s offers an action without AllowActs", address)
		}
	}
	s.Actions = true
	for _, address := range pages {
		if !strings.Contains(show(t, s, address), "/act?do=") {
			t.Errorf("%s offers no action", address)
		}
		if strings.Contains(show(t, s, address+"&at="+head), "/act?") {
			t.Errorf("%s offers an action for the past", address)
		}
	}
}

// TestWithoutCommands checks that pages of a log without commands contain none, because they would apply to another
// log.
func TestWithoutCommands(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	saved := uitest.SavedHistories(t, root, "decided-to-retry")
	saved[0].Events = saved[0].Events[:12] // the run is aborted
	uitest.WriteInterleaved(t, log, saved)
	uitest.Fill(t, f, log)
	s := site(t, f)
	for _, alone := range []bool{false, true} {
		if alone {
			s.NoCommands = true
		}
		for _, address := range []string{"/", "/run?id=fleet/decided-to-retry/1", "/event?at=3"} {
			if got := strings.Contains(show(t, s, address), "scutectl "); got == alone {
				t.Errorf("%s contains a command: %t", address, got)
			}
		}
	}
}
