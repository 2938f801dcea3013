package workflow

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/eventlog/logtest"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

// noopKind is a kind of task that does nothing.
type noopKind struct{ task.Kind }

// TestDeletedBeforeTheViewKnowsTheRun checks that a run is aborted if its WorkflowRun is deleted when the request is in
// the log but not yet in the view. Otherwise, the run would continue without being visible.
func TestDeletedBeforeTheViewKnowsTheRun(t *testing.T) {
	log, view := logtest.Open(t), runner.NewRuns()
	runs := &runner.Runner{Log: log, Incarnation: "one", Kinds: func(context.Context, workflow.Header) (task.Kinds, error) {
		return task.Kinds{"Do": noopKind{}}, nil
	}}
	w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789", Finalizers: []string{finalizer}}}
	id, _, _ := w.LogID()
	definition := &workflow.Definition{Header: workflow.Header{Namespace: "fleet", Name: "up"}, Tasks: []workflow.Task{{
		Name: "a", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Do"}},
	}}}
	if err := runs.Request(t.Context(), id, "test", definition); err != nil {
		t.Fatal(err)
	}
	api := controllertest.Client(t, w)
	if err := api.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Base: controllertest.Base(api), Runs: struct {
		*runner.Runner
		*runner.Runs
	}{runs, view}}
	reconcile := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		reconcile()
	}
	if s, _, err := runs.State(t.Context(), id); err != nil || !workflow.Summarize(s).Stopping {
		t.Fatalf("phase = %s, want it to stop; error %v", workflow.CurrentPhase(s), err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		t.Fatalf("before the run has ended: Get = %v", err)
	}
	if err := runs.Drive(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(w), w); !apierrors.IsNotFound(err) {
		t.Errorf("the WorkflowRun still exists: Get = %v", err)
	}
}
