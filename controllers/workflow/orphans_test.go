package workflow

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

// TestARunWithoutItsResourceIsAborted: nobody can see what the log drives for a WorkflowRun that is gone, and the user who removed it did not
// want it to continue. Another one of its name is another run. A run that was pushed here may have no resource; one that an older version
// began names no folder.
func TestARunWithoutItsResourceIsAborted(t *testing.T) {
	const earlier, pushed, older, namesake = "fleet/up/89abcdef", "fleet/up/1", "fleet/up/2", "fleet/upper/89abcdef"
	for name, c := range map[string]struct {
		gone, adopts bool
		want         []string
	}{
		"it is gone":                   {gone: true, want: []string{"fleet/up/01234567", earlier}},
		"another one has its name now": {want: []string{earlier}},
		"it shows one that is there":   {adopts: true, want: []string{"fleet/up/01234567"}},
	} {
		t.Run(name, func(t *testing.T) {
			log, view := logtest.Open(t), runner.NewRuns(nil)
			w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789", Finalizers: []string{finalizer}}}
			own, _, _ := ID(w)
			if c.adopts {
				w.Annotations = map[string]string{runAnnotation: earlier}
			}
			runs := &runner.Runner{Log: log, Incarnation: "one", Kinds: func(context.Context, workflow.Header) (task.Kinds, error) {
				return task.Kinds{"Do": none{}}, nil
			}}
			all := []string{own, earlier, pushed, older, namesake}
			for _, id := range all {
				runs.Origin = ""
				if id == pushed {
					runs.Origin = "a folder"
				}
				definition := &workflow.Definition{Header: workflow.Header{Namespace: "fleet", Name: "up"}, Tasks: []workflow.Task{{
					Name: "a", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Do"}},
				}}}
				if err := runs.Request(t.Context(), id, "test", definition); err != nil {
					t.Fatal(err)
				}
				records, err := log.Read(t.Context(), eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range records {
					if err := view.Apply(r); err != nil {
						t.Fatal(err)
					}
				}
			}
			api := controllertest.Client(t, w)
			if c.gone {
				w.Finalizers = nil
				if err := api.Update(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				if err := api.Delete(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			r := &Reconciler{Client: api, Live: api, Recorder: events.NewFakeRecorder(9), CaughtUp: controllertest.CaughtUp(), Runs: struct {
				*runner.Runner
				*runner.Runs
			}{runs, view}}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
				t.Fatal(err)
			}
			var aborted []string
			for _, id := range all {
				if s, _, err := runs.State(t.Context(), id); err != nil {
					t.Fatal(err)
				} else if workflow.Look(s).Stopping {
					aborted = append(aborted, id)
				}
			}
			if diff := cmp.Diff(c.want, aborted); diff != "" {
				t.Error(diff)
			}
		})
	}
}
