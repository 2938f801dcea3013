package workflow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestARunWithoutItsResourceIsAborted checks that an open run is aborted if its WorkflowRun was deleted, because users
// can no longer see it. A recreated WorkflowRun of the same name has another run. Runs with other IDs may have no
// resource, and are not aborted, including those of older versions without an origin.
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
			log, view := logtest.Open(t), runner.NewRuns()
			w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789", Finalizers: []string{finalizer}}}
			own, _, _ := w.LogID()
			if c.adopts {
				w.Annotations = map[string]string{v1alpha1.RunAnnotation: earlier}
			}
			runs := &runner.Runner{Log: log, Incarnation: "one", Kinds: func(context.Context, workflow.Header) (task.Kinds, error) {
				return task.Kinds{"Do": noopKind{}}, nil
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
			if diff := cmp.Diff([]string{own, earlier, namesake}, view.Open("", "")); diff != "" {
				t.Errorf("Open for all names (-want +got): %s", diff)
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
			r := &Reconciler{Base: controllertest.Base(api), Runs: struct {
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
				} else if workflow.Summarize(s).Stopping {
					aborted = append(aborted, id)
				}
			}
			if diff := cmp.Diff(c.want, aborted); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFilesOfARunWithoutItsResource checks that the files of a run are removed only after the run has ended, and not
// while a resource of its name exists, because that is reconciled repeatedly.
func TestFilesOfARunWithoutItsResource(t *testing.T) {
	const over, open, unknown, pushed, namesake, other = "fleet/up/89abcdef", "fleet/up/00000000", "fleet/up/11111111", "fleet/up/1", "fleet/upper/89abcdef", "other/up/89abcdef"
	for _, gone := range []bool{true, false} {
		dir := t.TempDir()
		log, view := logtest.Open(t), runner.NewRuns()
		w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789", DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"another"}}}
		own, _, _ := w.LogID()
		runs := &runner.Runner{
			Log: log, Incarnation: "one", Dir: func(id string) string { return filepath.Join(dir, filepath.FromSlash(id)) },
			Kinds: func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{"Do": noopKind{}}, nil },
		}
		all := []string{own, over, open, unknown, pushed, namesake, other}
		for _, id := range all {
			if err := os.MkdirAll(runs.Dir(id), 0o700); err != nil {
				t.Fatal(err)
			}
			if id == unknown {
				continue
			}
			definition := &workflow.Definition{Header: workflow.Header{Namespace: "fleet", Name: "up"}, Tasks: []workflow.Task{{
				Name: "a", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Do"}},
			}}}
			if err := runs.Request(t.Context(), id, "test", definition); err != nil {
				t.Fatal(err)
			}
			if id != open {
				if err := errors.Join(runs.Command(t.Context(), id, "test", workflow.AbortRun{}), runs.Drive(t.Context(), id)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "a-file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		left := runs.WithFiles("", "")
		want := []string{open, own, unknown, over, namesake, other}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Fatalf("WithFiles (-want +got): %s", diff)
		}
		api := controllertest.Client(t, w)
		want = []string{open, own, pushed, unknown, over}
		if gone {
			want = []string{open, pushed}
			w.Finalizers = nil
			if err := api.Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
		}
		r := &Reconciler{Base: controllertest.Base(api), Runs: struct {
			*runner.Runner
			*runner.Runs
		}{runs, view}}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "fleet", "up", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			files[i], _ = filepath.Rel(dir, files[i])
		}
		if diff := cmp.Diff(want, files); diff != "" {
			t.Errorf("resource deleted: %t: files (-want +got): %s", gone, diff)
		}
	}
	for _, none := range []*runner.Runner{{}, {Dir: func(string) string { return "" }}, {Dir: func(string) string { return "/is/not/there" }}} {
		if left := none.WithFiles("", ""); len(left) > 0 {
			t.Errorf("WithFiles = %v", left)
		}
	}
}
