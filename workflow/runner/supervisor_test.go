package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

// supervise runs a supervisor on the log as the daemon does: a view that follows the log wakes it.
func (w *fixture) supervise(r *runner.Runner, limit int) *runner.Runs {
	r.Slots = fair.NewSlots(limit)
	runs := runner.NewRuns()
	supervisor := r.Supervisor(runs)
	runs.Changed = supervisor.Changed
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = w.log.Follow(ctx, 0, func(record eventlog.Record) error {
			_ = runs.Apply(record)
			return nil
		})
	})
	wg.Go(func() { supervisor.Run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	return runs
}

func (w *fixture) submit(r *runner.Runner, id, manifest string) {
	w.t.Helper()
	if err := r.Request(w.t.Context(), id, "user/test", w.build(manifest)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) untilPhase(runs *runner.Runs, run string, phase v1alpha1.RunPhase) {
	w.t.Helper()
	w.eventually(run+" is "+string(phase), func() bool { g, ok := runs.Summary(run); return ok && g.Phase == phase })
}

func TestSupervisorBoundsRuns(t *testing.T) {
	w := newFixture(t)
	gate := w.gate("a")
	r := w.process("one", nil)
	runs := w.supervise(r, 2)
	d := w.build("tasks:\n- {name: a, kind: Do}\n- {name: b, kind: Do, needs: [a]}\n")
	for i := range 6 {
		if err := r.Request(t.Context(), fmt.Sprintf("ns/run/%d", i), "user/test", d); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("two runs work and four wait", func() bool {
		waiting := 0
		for i := range 6 {
			if r.Throttled(fmt.Sprintf("ns/run/%d", i)).Reason == supervise.NoFreePlace {
				waiting++
			}
		}
		return waiting == 4 && w.peakBusy() == 2
	})
	close(gate)
	for i := range 6 {
		w.untilPhase(runs, fmt.Sprintf("ns/run/%d", i), v1alpha1.RunSucceeded)
	}
	if most := w.peakBusy(); most != 2 {
		t.Errorf("%d runs were driven at once, want 2", most)
	}
	totals := runs.Totals()
	if totals.Phases[v1alpha1.RunSucceeded] != 6 || totals.Tasks.Succeeded != 12 || totals.InFlight != 0 {
		t.Errorf("Totals = %+v", totals)
	}
	status, ok := runs.Status("ns/run/3") // of a run whose graph is no longer in memory
	if !ok || len(status.Tasks) != 2 || status.Progress != "2/2" || status.LogSequence == 0 || status.RunID != "ns/run/3" {
		t.Errorf("Status = %+v", status)
	}
}

// TestRunsShareThePlaces checks that a tenant's run continues while another tenant's runs occupy all workers.
func TestRunsShareThePlaces(t *testing.T) {
	w := newFixture(t)
	w.gate("long")
	r := w.process("one", nil)
	runs := w.supervise(r, 2)
	long, short := w.build("tasks: [{name: long, kind: Do}]"), w.build("tasks: [{name: short, kind: Do}]")
	ask := func(id string, d *workflow.Definition) {
		named := *d
		named.Namespace, _, _ = strings.Cut(id, "/")
		if err := r.Request(t.Context(), id, "user/test", &named); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		ask(fmt.Sprintf("attacker/run/%d", i), long)
	}
	w.eventually("two runs work and two wait", func() bool {
		waiting := 0
		for i := range 4 {
			if r.Throttled(fmt.Sprintf("attacker/run/%d", i)).Reason == supervise.NoFreePlace {
				waiting++
			}
		}
		return waiting == 2
	})
	ask("prod/run/0", short)
	w.untilPhase(runs, "prod/run/0", v1alpha1.RunSucceeded)
	if why := r.Throttled("prod/run/0"); why != (supervise.Throttled{}) {
		t.Errorf("a finished run is throttled: %+v", why)
	}
}

// TestRunsThatOnlyWaitHoldNoPlace checks that waiting attempts, and tasks that wait for their next attempt, block no
// other run.
func TestRunsThatOnlyWaitHoldNoPlace(t *testing.T) {
	w := newFixture(t)
	release := w.gate("wait")
	r := w.process("one", nil)
	runs := w.supervise(r, 1)
	for i := range 3 {
		w.submit(r, fmt.Sprintf("ns/wait/%d", i), "tasks: [{name: wait, kind: Do, with: {waits: true}}]")
	}
	w.submit(r, "ns/backoff/0", "tasks: [{name: again, kind: Do, with: {fails: 1}, retry: {max: 1, delay: 1h}}]")
	w.eventually("all of them wait", func() bool {
		g, _ := runs.Summary("ns/backoff/0")
		return count(w.recorded(), "do wait") == 3 && count(w.recorded(), "do again") == 1 && g.InFlight == 0
	})
	w.submit(r, "ns/work/0", "tasks: [{name: a, kind: Do}, {name: b, kind: Do, needs: [a]}]")
	w.untilPhase(runs, "ns/work/0", v1alpha1.RunSucceeded)
	close(release)
	for i := range 3 {
		w.untilPhase(runs, fmt.Sprintf("ns/wait/%d", i), v1alpha1.RunSucceeded)
	}
}

// TestAttemptsWorkAgain checks that an attempt that has waited gets the next free worker, regardless of its namespace's
// quota, or ends normally.
func TestAttemptsWorkAgain(t *testing.T) {
	w := newFixture(t)
	w.gate("long")
	wait, again := w.gate("wait"), w.gate("again wait")
	r := w.process("one", nil)
	var over atomic.Bool
	r.Quota = func(string) string {
		if over.Load() {
			return "too much"
		}
		return ""
	}
	runs := w.supervise(r, 1)
	for i := range 2 {
		w.submit(r, fmt.Sprintf("ns/wait/%d", i), "tasks: [{name: wait, kind: Do, with: {waits: true, again: true}}]")
	}
	w.eventually("both wait", func() bool { return count(w.recorded(), "do wait") == 2 })
	w.submit(r, "ns/long/0", "tasks: [{name: long, kind: Do}]")
	w.waitForLine("do long")
	close(wait)
	w.eventually("both ask for a place", func() bool {
		return r.Throttled("ns/wait/0").Reason == supervise.NoFreePlace && r.Throttled("ns/wait/1").Reason == supervise.NoFreePlace
	})
	if err := r.Command(t.Context(), "ns/wait/0", "user/test", workflow.AbortRun{Reason: "seen enough"}); err != nil {
		t.Fatal(err)
	}
	w.untilPhase(runs, "ns/wait/0", v1alpha1.RunAborted)
	if count(w.recorded(), "works again wait") > 0 {
		t.Errorf("it ran beside the run that has the worker: %v", w.recorded())
	}
	over.Store(true)
	if err := r.Command(t.Context(), "ns/long/0", "user/test", workflow.AbortRun{Reason: "seen enough"}); err != nil {
		t.Fatal(err)
	}
	w.waitForLine("works again wait")
	over.Store(false)
	w.submit(r, "ns/late/0", "tasks: [{name: late, kind: Do}]")
	w.eventually("another run waits for the place", func() bool { return r.Throttled("ns/late/0").Reason == supervise.NoFreePlace })
	close(again)
	w.untilPhase(runs, "ns/wait/1", v1alpha1.RunSucceeded)
	w.untilPhase(runs, "ns/late/0", v1alpha1.RunSucceeded)
	if count(w.recorded(), "works again wait") != 1 {
		t.Errorf("steps = %v", w.recorded())
	}
}

// TestRecreatedStepsWorkAgain checks that an attempt that removes what an earlier one created needs a worker again
// afterwards, because the removal may take long.
func TestRecreatedStepsWorkAgain(t *testing.T) {
	w := newFixture(t)
	w.gate("long")
	undo := w.gate("undo made")
	r := w.process("one", nil)
	runs := w.supervise(r, 1)
	w.submit(r, "ns/made/0", "tasks: [{name: made, kind: Do, with: {fails: 1, undoWaits: true}, retry: {max: 1, recreate: true}}]")
	w.eventually("what it has made is taken away", func() bool { return strings.Contains(strings.Join(w.recorded(), " "), "undo made") })
	w.submit(r, "ns/long/0", "tasks: [{name: long, kind: Do}]")
	w.waitForLine("do long")
	close(undo)
	w.eventually("it asks for a place", func() bool { return r.Throttled("ns/made/0").Reason == supervise.NoFreePlace })
	if count(w.recorded(), "do made") != 1 {
		t.Errorf("it ran beside the run that has the worker: %v", w.recorded())
	}
	if err := r.Command(t.Context(), "ns/long/0", "user/test", workflow.AbortRun{Reason: "seen enough"}); err != nil {
		t.Fatal(err)
	}
	w.untilPhase(runs, "ns/made/0", v1alpha1.RunSucceeded)
}

// TestDecisionsWakeARun checks that a user's decision wakes a run that waits for its next attempt. In this test no time
// passes.
func TestDecisionsWakeARun(t *testing.T) {
	for name, c := range map[string]struct {
		in    workflow.Input
		task  string // starts because of it
		phase v1alpha1.RunPhase
	}{
		"approve": {workflow.Decision{Task: "asks", Action: workflow.ActSucceed}, "do after", ""},
		"retry":   {workflow.Decision{Task: "fails", Action: workflow.ActRetry}, "do fails", ""},
		"ignore":  {workflow.Decision{Task: "fails", Action: workflow.ActIgnore}, "do next", ""},
		"abort":   {workflow.AbortRun{Reason: "seen enough"}, "", v1alpha1.RunAborted},
		"pause":   {workflow.PauseRun{Reason: "look"}, "", v1alpha1.RunPaused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			r := w.process("one", nil)
			r.After = func(time.Duration) <-chan time.Time { return nil }
			runs := w.supervise(r, 1)
			w.request(`
tasks:
- {name: again, kind: Do, with: {fails: 1}, retry: {max: 1, delay: 1h}}
- {name: asks, kind: Do, with: {ask: go on}}
- {name: after, kind: Do, needs: [asks]}
- {name: fails, kind: Do, with: {fails: 1}, failurePolicy: Pause}
- {name: next, kind: Do, needs: [{task: fails, optional: true}]}
`)
			w.eventually("it waits", func() bool {
				g, _ := runs.Summary(id)
				return g.Counts.Paused == 2 && g.InFlight == 0 && count(w.recorded(), "do again") == 1
			})
			before := count(w.recorded(), c.task)
			w.command(c.in)
			w.eventually("it is taken up", func() bool {
				g, _ := runs.Summary(id)
				return g.Phase == c.phase || c.task != "" && count(w.recorded(), c.task) > before
			})
		})
	}
}

// TestQuotaKeepsRunsFromStarting checks that an exceeded quota prevents only new starts.
func TestQuotaKeepsRunsFromStarting(t *testing.T) {
	w := newFixture(t)
	r := w.process("one", nil)
	var over atomic.Bool
	r.Quota = func(string) string {
		if over.Load() {
			return "too much"
		}
		return ""
	}
	release := w.gate("a")
	runs := w.supervise(r, 1)
	w.submit(r, "ns/run/0", "tasks: [{name: a, kind: Do}, {name: b, kind: Do, needs: [a]}]")
	w.waitForLine("do a")
	over.Store(true)
	close(release)
	w.eventually("the run is throttled", func() bool {
		return r.Throttled("ns/run/0") == supervise.Throttled{Reason: supervise.QuotaExceeded, Message: "too much"}
	})
	if !slices.Contains(w.recorded(), "done a") || slices.Contains(w.recorded(), "do b") {
		t.Errorf("running tasks must end, and no others start: %v", w.recorded())
	}
	over.Store(false)
	w.untilPhase(runs, "ns/run/0", v1alpha1.RunSucceeded)
}

// TestSupervisorLeavesStrandedRuns checks that a run that this process cannot handle is tried once, and again when it
// has changed.
func TestSupervisorLeavesStrandedRuns(t *testing.T) {
	w := newFixture(t)
	var mu sync.Mutex
	asked, able := 0, false
	r := w.process("one", nil)
	r.Kinds = func(ctx context.Context, h workflow.Header) (task.Kinds, error) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; !able {
			return nil, errors.New("the kind is not here")
		}
		return w.kinds(ctx, h)
	}
	runs := w.supervise(r, 1)
	w.request("tasks: [{name: a, kind: Do}]")
	w.untilPhase(runs, id, v1alpha1.RunStranded)
	if _, due := runs.Due(id); due {
		t.Error("a stranded run is due again")
	}
	elsewhere := runner.NewRuns()
	elsewhere.Incarnation = "another"
	if _, err := w.log.Replay(t.Context(), 0, elsewhere.Apply); err != nil {
		t.Fatal(err)
	}
	if _, due := elsewhere.Due(id); !due {
		t.Error("a stranded run is not due for another process")
	}
	mu.Lock()
	able = true
	mu.Unlock()
	w.command(workflow.ResumeRun{Reason: "it is there now"})
	w.untilPhase(runs, id, v1alpha1.RunSucceeded)
	mu.Lock()
	defer mu.Unlock()
	if asked != 2 {
		t.Errorf("the run was tried %d times, want once before and once after the change", asked)
	}
}

// TestAbortedRunsGiveBack checks that an aborted run releases its holds, even if it is paused.
func TestAbortedRunsGiveBack(t *testing.T) {
	w := newFixture(t)
	w.gate("work")
	runs := w.supervise(w.process("one", nil), 1)
	w.request("tasks:\n- {name: hold, kind: Hold}\n- {name: work, kind: Do, needs: [hold]}\n")
	w.waitForLine("do work")
	w.command(workflow.PauseRun{Reason: "look"})
	w.command(workflow.AbortRun{Reason: "deleted"})
	w.command(workflow.AbortRun{Reason: "asked twice"})
	w.untilPhase(runs, id, v1alpha1.RunAborted)
	if count(w.recorded(), "undone hold") != 1 {
		t.Errorf("the hold was not released: %v", w.recorded())
	}
	g, _ := runs.Summary(id)
	if s, _ := runs.Status(id); !g.Settled || s.Message != "aborted by an operator: deleted" {
		t.Errorf("summary %+v, message %s", g, s.Message)
	}
}

// TestStatusIsBounded checks that the status of a large run fits into a resource, and that a summary of it is cheap.
func TestStatusIsBounded(t *testing.T) {
	w := newFixture(t)
	d := &workflow.Definition{Header: workflow.Header{Name: "large"}}
	for i := range 100_000 {
		d.Tasks = append(d.Tasks, workflow.Task{
			Name: fmt.Sprintf("a-task-with-a-long-name-%060d", i), Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Probe"}}, Policy: v1alpha1.Abort,
		})
	}
	if err := w.process("one", nil).Request(t.Context(), "ns/large/1", "user/test", d); err != nil {
		t.Fatal(err)
	}
	runs := runner.NewRuns()
	records, err := w.log.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: "ns/large/1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records {
		if err := runs.Apply(record); err != nil {
			t.Fatal(err)
		}
	}
	status, ok := runs.Status("ns/large/1")
	raw, err := json.Marshal(status)
	if !ok || err != nil || len(raw) > 200<<10 || len(status.Tasks) != 100 || status.TasksOmitted != 99_900 {
		t.Errorf("known %v, error %v: %d bytes, %d tasks, %d omitted", ok, err, len(raw), len(status.Tasks), status.TasksOmitted)
	}
	if n := testing.AllocsPerRun(100, func() { runs.Summary("ns/large/1"); runs.Due("ns/large/1") }); n > 100 {
		t.Errorf("a summary of 100,000 tasks allocates %v times", n)
	}
}
