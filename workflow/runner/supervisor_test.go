package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

// supervise runs a supervisor on the log as the daemon does: a view that follows the log wakes it.
func (w *world) supervise(r *runner.Runner, limit int) *runner.Runs {
	wake := make(chan struct{}, 1)
	runs := runner.NewRuns(func(string) {
		select {
		case wake <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = w.log.Follow(ctx, 0, func(r eventlog.Record) error { _ = runs.Apply(r); return nil })
	})
	wg.Go(func() { (&runner.Supervisor{Runner: r, Runs: runs, Wake: wake, Limit: limit}).Run(ctx) })
	w.t.Cleanup(func() { cancel(); wg.Wait() })
	return runs
}

func (w *world) untilPhase(runs *runner.Runs, run string, phase v1alpha1.RunPhase) {
	w.t.Helper()
	w.eventually(run+" is "+string(phase), func() bool { g, ok := runs.Glance(run); return ok && g.Phase == phase })
}

func TestSupervisorBoundsRuns(t *testing.T) {
	w := newWorld(t)
	r := w.process("one", nil)
	runs := w.supervise(r, 2)
	d := w.build("tasks:\n- {name: a, kind: Do, with: {sleep: 30ms}}\n- {name: b, kind: Do, needs: [a]}\n")
	for i := range 6 {
		if err := r.Request(t.Context(), fmt.Sprintf("ns/run/%d", i), "user/test", d); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		w.untilPhase(runs, fmt.Sprintf("ns/run/%d", i), v1alpha1.RunSucceeded)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most != 2 {
		t.Errorf("%d runs were driven at once, the limit is 2", w.most)
	}
	totals := runs.Totals()
	if totals.Phases[v1alpha1.RunSucceeded] != 6 || totals.Tasks.Succeeded != 12 || totals.InFlight != 0 {
		t.Errorf("%+v", totals)
	}
	status, ok := runs.Status("ns/run/3") // of a run whose graph is no longer kept
	if !ok || len(status.Tasks) != 2 || status.Progress != "2/2" || status.LogSequence == 0 || status.RunID != "ns/run/3" {
		t.Errorf("%+v", status)
	}
}

// TestSupervisorLeavesStrandedRuns: a run that this process does not know enough for is looked at once, and again when it
// has changed.
func TestSupervisorLeavesStrandedRuns(t *testing.T) {
	w := newWorld(t)
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
	runs := w.supervise(r, 0)
	w.request("tasks: [{name: a, kind: Do}]")
	w.untilPhase(runs, id, v1alpha1.RunStranded)
	if due := runs.Due(r.Incarnation); len(due) != 0 {
		t.Errorf("it is due again, however often it is looked at: %v", due)
	}
	if due := runs.Due("another"); len(due) != 1 {
		t.Errorf("another process has nothing to do: %v", due)
	}
	mu.Lock()
	able = true
	mu.Unlock()
	w.command(workflow.ResumeRun{Reason: "it is there now"})
	w.untilPhase(runs, id, v1alpha1.RunSucceeded)
	mu.Lock()
	defer mu.Unlock()
	if asked != 2 {
		t.Errorf("it was taken up %d times, want once before it has changed and once after", asked)
	}
}

// TestAbortedRunsGiveBack what they held, also when they are paused.
func TestAbortedRunsGiveBack(t *testing.T) {
	w := newWorld(t)
	w.gate("work")
	runs := w.supervise(w.process("one", nil), 0)
	w.request("tasks:\n- {name: hold, kind: Hold}\n- {name: work, kind: Do, needs: [hold]}\n")
	w.until("do work")
	w.command(workflow.PauseRun{Reason: "look"})
	w.command(workflow.AbortRun{Reason: "deleted"})
	w.command(workflow.AbortRun{Reason: "asked twice"})
	w.untilPhase(runs, id, v1alpha1.RunAborted)
	if count(w.noted(), "undone hold") != 1 {
		t.Errorf("what was held is not given back: %v", w.noted())
	}
	g, _ := runs.Glance(id)
	if s, _ := runs.Status(id); !g.Settled || s.Message != "aborted by an operator: deleted" {
		t.Errorf("%+v: %s", g, s.Message)
	}
}

// The status of a large run fits a resource, and a glance at it costs nothing.
func TestStatusIsBounded(t *testing.T) {
	w := newWorld(t)
	d := &workflow.Definition{Header: workflow.Header{Name: "large"}}
	for i := range 100_000 {
		d.Tasks = append(d.Tasks, workflow.Task{
			Name: fmt.Sprintf("a-task-with-a-long-name-%060d", i), Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Probe"}}, Policy: v1alpha1.Abort,
		})
	}
	if err := w.process("one", nil).Request(t.Context(), "ns/large/1", "user/test", d); err != nil {
		t.Fatal(err)
	}
	runs := runner.NewRuns(nil)
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
		t.Errorf("%v %v: %d bytes, %d tasks, %d left out", ok, err, len(raw), len(status.Tasks), status.TasksOmitted)
	}
	started := time.Now()
	for range 10_000 {
		runs.Glance("ns/large/1")
		runs.Due("one")
	}
	if took := time.Since(started); took > time.Second {
		t.Errorf("10,000 glances took %s", took)
	}
}
