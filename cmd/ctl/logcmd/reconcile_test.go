package logcmd

import (
	"cmp"
	"log/slog"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/controllers/move"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/mover/runner"
	wf "scute.dev/workflow"
	runs "scute.dev/workflow/runner"
)

// resources returns the builder of a fake client with scute's kinds.
func resources(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme)
}

// openOutcomes returns the open moves and runs of a log, and how each will be reconciled.
func openOutcomes(t *testing.T, l *eventlog.Log, cluster *connect.Cluster) (*unfinishedWork, []trust.Outcome) {
	t.Helper()
	open := newUnfinishedWork()
	if _, err := l.Replay(t.Context(), 0, open.apply); err != nil {
		t.Fatal(err)
	}
	outcomes, err := open.outcomes(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return open, outcomes
}

// TestReconcileOpenMoves checks that no open move simply continues in a log that went back: the moves may be finished,
// or the log may lack their latest steps.
func TestReconcileOpenMoves(t *testing.T) {
	l := logtest.Open(t)
	client := resources(t)
	r := &runner.Runner{Log: l, Logger: slog.New(slog.DiscardHandler)}
	over := metav1.NewTime(time.Now())
	want := make(map[string]string)
	for name, c := range map[string]struct {
		status v1alpha1.MoveStatus
		gone   bool
		alone  bool // the log does not contain it
		then   string
	}{
		"begun":       {status: v1alpha1.MoveStatus{Phase: mover.PhaseRollingBack}, then: thenLost},
		"unpublished": {then: thenLost},
		"aborted":     {status: v1alpha1.MoveStatus{Phase: mover.PhaseRolledBack, FinishedAt: &over}, then: thenEnds},
		"deleted":     {gone: true, then: thenEnds},
		"forgotten":   {status: v1alpha1.MoveStatus{Phase: mover.PhaseDeleting}, alone: true, then: thenLost},
	} {
		m := &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name + "-uid")}, Status: c.status}
		id := v1alpha1.LogID(m)
		if name != "unpublished" {
			m.Status.MoveID = id
		}
		if !c.gone {
			client = client.WithObjects(m)
		}
		if !c.alone {
			if err := r.Request(t.Context(), id, "user/test", move.Spec(m)); err != nil {
				t.Fatal(err)
			}
		}
		want["move/"+id] = c.then
	}
	cluster := &connect.Cluster{Client: client.Build()}
	look := func() (*unfinishedWork, int) {
		t.Helper()
		open, outcomes := openOutcomes(t, l, cluster)
		for _, o := range outcomes {
			if o.Next != want[o.Name] {
				t.Errorf("%s: got %s, want %s", o.Name, o.Next, want[o.Name])
			}
		}
		return open, len(outcomes)
	}
	open, n := look()
	if n != len(want) {
		t.Errorf("got %d outcomes, want %d", n, len(want))
	}
	if err := open.reconcile(t.Context(), r, nil, "user/test"); err != nil {
		t.Fatal(err)
	}
	open, n = look()
	if n != 3 {
		t.Errorf("got %d open moves after reconcile, want the 3 stranded ones", n)
	}
	for _, id := range open.openMoves() {
		if status, _ := open.moves.Status(id); !status.Stranded {
			t.Errorf("%s: phase = %s, want stranded", id, status.Phase)
		}
	}
}

// TestReconcileOpenRuns checks that runs that have ended, were rolled back or lost their resource are stopped in a log
// that went back, and that runs in progress and runs without a resource continue.
func TestReconcileOpenRuns(t *testing.T) {
	l := logtest.Open(t)
	client := resources(t)
	r := &runs.Runner{Log: l, Logger: slog.New(slog.DiscardHandler)}
	over := metav1.NewTime(time.Now())
	want := make(map[string]string)
	for name, c := range map[string]struct {
		status v1alpha1.WorkflowRunStatus
		gone   bool
		actor  string
		then   string
	}{
		"in-progress":    {status: v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunRunning}, then: thenRun},
		"unpublished":    {then: thenRun},
		"rolled-back":    {status: v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunRolledBack, FinishedAt: &over}, then: thenStops},
		"succeeded":      {status: v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunSucceeded, FinishedAt: &over}, then: thenStops},
		"aborted":        {status: v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunAborted}, then: thenStops},
		"turned-back":    {status: v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunRollingBack}, then: thenStops},
		"deleted":        {gone: true, then: thenStops},
		"of-an-operator": {gone: true, actor: "user/test", then: thenRun},
	} {
		w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name, UID: types.UID(name + "-uid")}, Status: c.status}
		id, _, _ := w.LogID()
		if c.status.Phase != "" {
			w.Status.RunID = id
		}
		if !c.gone {
			client = client.WithObjects(w)
		}
		d := &wf.Definition{Header: wf.Header{Namespace: "fleet", Name: name}, Tasks: []wf.Task{{Name: "a", Stage: wf.StageMain, Steps: []wf.Step{{Kind: "Do"}}}}}
		if err := r.Request(t.Context(), id, cmp.Or(c.actor, "resource/fleet/"+name), d); err != nil {
			t.Fatal(err)
		}
		want["run/"+id] = c.then
	}
	cluster := &connect.Cluster{Client: client.Build()}
	look := func(stopped bool) *unfinishedWork {
		t.Helper()
		open, outcomes := openOutcomes(t, l, cluster)
		for _, o := range outcomes {
			if then := want[o.Name]; o.Next != then && !(stopped && o.Next == thenRun) {
				t.Errorf("%s: got %s, want %s", o.Name, o.Next, then)
			}
		}
		return open
	}
	open := look(false)
	for range 2 { // the second time records nothing
		if err := open.reconcile(t.Context(), nil, r, "user/test"); err != nil {
			t.Fatal(err)
		}
	}
	for name, then := range want {
		g, _ := look(true).runs.Summary(strings.TrimPrefix(name, "run/"))
		if stopped := g.Stopping; stopped != (then == thenStops) {
			t.Errorf("%s: stopping = %t", name, stopped)
		}
	}
}
