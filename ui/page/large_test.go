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

// largest is the size of a page about a run of 10,000 tasks: it does not grow with the tasks.
const largest = 200 << 10

const largeRun = "/run?id=fleet/large/1"

// large is a feed of a run of n tasks: chains that branch from one task and join in another, the first half of them done, one failed.
func large(t testing.TB, n int) *feed.Feed {
	t.Helper()
	d := workflow.Definition{Header: workflow.Header{Namespace: "fleet", Name: "large", Policy: "Pause"}}
	const chains = 50
	task := func(name string, needs ...string) {
		one := workflow.Task{Name: name, Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Exec", With: json.RawMessage(`{"command":["true"]}`)}}, Policy: "Pause", PolicyFrom: "workflow"}
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
	facts = append(facts, workflow.TaskStarted{Task: d.Tasks[n/2].Name, Attempt: 1}, workflow.TaskPaused{Task: d.Tasks[n/2].Name, Why: workflow.WhyFailed, Message: "it failed"})
	f := uitest.Feed(t)
	write(t, f, facts)
	return f
}

// What a commit has of facts, and a part of a definition of tasks: less than a message takes.
const batch, part = 100, 40

// write gives a feed facts about the run, a second apart, by way of a log.
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

// TestALargeRunFoldsIntoGroups: the page of 10,000 tasks is no larger than one of 1,000, and names what needs attention.
func TestALargeRunFoldsIntoGroups(t *testing.T) {
	s := site(t, large(t, 10_000))
	body := show(t, s, largeRun)
	if len(body) > largest {
		t.Errorf("the page has %d bytes, more than %d", len(body), largest)
	}
	if n := strings.Count(body, `<g class="box`); n < 2 || n > 48 {
		t.Errorf("the picture has %d boxes", n)
	}
	for _, want := range []string{"10000 tasks", "it failed", "page 1 of 100"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if group := show(t, s, largeRun+"&group=2"); !strings.Contains(group, "All 10000 tasks") {
		t.Error("a group is not listed")
	}
}

// BenchmarkRunPage is the time to the first byte of the page about a run, and its size.
func BenchmarkRunPage(b *testing.B) {
	for _, tasks := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(tasks), func(b *testing.B) {
			s := site(b, large(b, tasks))
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
