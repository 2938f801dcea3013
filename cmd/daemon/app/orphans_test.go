package app

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"scute.dev/controllers/resource"
	"scute.dev/eventlog/logtest"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

// TestTheStartLooksForTheResourcesOfRuns checks that a daemon checks at its start, once it may act on the log, whether
// the WorkflowRuns of open runs still exist. Otherwise, a run that only waits would not notice that its WorkflowRun was
// deleted while no daemon ran.
func TestTheStartLooksForTheResourcesOfRuns(t *testing.T) {
	const waits, over = "fleet/waits/01234567", "fleet/over/89abcdef"
	dir, log, v := t.TempDir(), logtest.Open(t), newViews(usageLimits{})
	runs := &runner.Runner{
		Log: log, Incarnation: "one", Dir: func(id string) string { return filepath.Join(dir, filepath.FromSlash(id)) },
		Kinds: func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{}, nil },
	}
	if err := os.MkdirAll(runs.Dir(over), 0o700); err != nil {
		t.Fatal(err)
	}
	definition := &workflow.Definition{Header: workflow.Header{Namespace: "fleet", Name: "waits"}, Tasks: []workflow.Task{{
		Name: "a", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Wait"}},
	}}}
	if err := runs.Request(t.Context(), waits, "test", definition); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Replay(t.Context(), 0, v.Apply); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		d := &daemon{view: v, runs: runs, gate: &gate{open: make(chan struct{})}}
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
		defer q.ShutDown()
		if err := resource.ResourceSource(&d.drivenRuns.changes).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		start := d.whenLeading(func(context.Context) error {
			d.drivenRuns.enqueue(d.runsOf)
			return nil
		})
		go func() { _ = start(t.Context()) }()
		synctest.Wait()
		if q.Len() != 0 {
			t.Error("requests were queued before the log could be acted on")
		}
		close(d.gate.open)
		synctest.Wait()
		looked := map[string]bool{}
		for range q.Len() {
			r, _ := q.Get()
			looked[r.String()] = true
		}
		if diff := cmp.Diff(map[string]bool{"fleet/waits": true, "fleet/over": true}, looked); diff != "" {
			t.Error(diff)
		}
	})
}
