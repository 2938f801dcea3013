package page_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/ui/feed"
	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// largest is the maximum size of the page of a run, whatever its number of tasks.
const largest = 200 << 10

const largeRun = "/run?id=fleet/large/1"

// largeRunFeed returns a feed with a run of n tasks in chains that start from one task. The first
// half of the tasks is done, and one has failed.
func largeRunFeed(t testing.TB, n int) *feed.Feed {
	t.Helper()
	d := workflow.Definition{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}}
	const chains = 50
	task := func(name string, needs ...string) {
		one := workflow.Task{Name: name, Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec", With: json.RawMessage(`{"command":["true"]}`)}}, Policy: "Pause", PolicySource: "workflow"}
		for _, need := range needs {
			one.Needs = append(one.Needs, workflow.Need{Task: need, On: "Success"})
		}
		d.Tasks = append(d.Tasks, one)
	}
	task("begin")
	for i := range n - 1 {
		above := "begin"
		if i >= chains {
			above = fmt.Sprintf("cluster-%d-step-%d", i%chains, i/chains-1)
		}
		task(fmt.Sprintf("cluster-%d-step-%d", i%chains, i/chains), above)
	}
	var facts []workflow.Event
	parts := slices.Collect(slices.Chunk(d.Tasks, part))
	for i, some := range parts {
		facts = append(facts, workflow.Defined{Part: i, Of: len(parts), Tasks: some})
	}
	facts = append(facts, workflow.Started{Header: d.Header, Hash: "hash"})
	for _, one := range d.Tasks[:n/2] {
		facts = append(facts, workflow.TaskStarted{Task: one.Name, Attempt: 1}, workflow.TaskSucceeded{Task: one.Name})
	}
	facts = append(facts, workflow.TaskStarted{Task: d.Tasks[n/2].Name, Attempt: 1}, workflow.TaskPaused{Task: d.Tasks[n/2].Name, Reason: workflow.ReasonFailed, Message: "it failed"})
	f := uitest.Feed(t)
	write(t, f, facts)
	return f
}

// batch is the number of events in a commit, part that of tasks in a part of a definition. Both fit into a message.
const batch, part = 100, 40

// write adds events of the run to a feed, a second apart, through a log.
func write(t testing.TB, f *feed.Feed, facts []workflow.Event) {
	t.Helper()
	log, catalog, last := logtest.Open(t), workflow.NewCatalog(), uint64(0)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for some := range slices.Chunk(facts, batch) {
		var events []eventlog.Event
		for _, fact := range some {
			ev, err := catalog.Encode(fact)
			if err != nil {
				t.Fatal(err)
			}
			at = at.Add(time.Second)
			ev.Time = at
			events = append(events, ev)
		}
		last = uitest.Append(t, log, eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/large/1"}, last, events...)
	}
	uitest.Fill(t, f, log)
}

// TestALargeRunFoldsIntoGroups checks that the page of a run with 10,000 tasks has a limited size, and shows what needs
// attention.
func TestALargeRunFoldsIntoGroups(t *testing.T) {
	s := site(t, largeRunFeed(t, 10_000))
	body := show(t, s, largeRun)
	if len(body) > largest {
		t.Errorf("the page has %d bytes, want at most %d", len(body), largest)
	}
	if n := strings.Count(body, `<g class="box`); n < 2 || n > 48 {
		t.Errorf("the picture has %d boxes, want 2 to 48", n)
	}
	for _, want := range []string{"10000 tasks", "it failed", "page 1 of 100"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
	if group := show(t, s, largeRun+"&group=2"); !strings.Contains(group, "All 10000 tasks") {
		t.Error("the page of a group does not list its tasks")
	}
}

// BenchmarkRunPage measures the time to render the page of a run, and its size.
func BenchmarkRunPage(b *testing.B) {
	for _, tasks := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(tasks), func(b *testing.B) {
			s := site(b, largeRunFeed(b, tasks))
			u, err := url.Parse(largeRun)
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			size := 0
			for b.Loop() {
				body, _, err := s.Page(u.Path, u.Query(), false)
				if err != nil {
					b.Fatal(err)
				}
				size = len(body)
			}
			b.ReportMetric(float64(size), "bytes/page")
		})
	}
}
