package workflow

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/workflow"
)

// forgottenRun is a log with an ended run, and a view that has forgotten it. No other method may be called.
type forgottenRun struct {
	domain
	recalls   int
	discarded []string
}

func (*forgottenRun) Summary(string) (workflow.Summary, bool) { return workflow.Summary{}, false }
func (*forgottenRun) Open(string, string) []string            { return nil }
func (*forgottenRun) Status(string) (s v1alpha1.WorkflowRunStatus, known bool) {
	return s, false
}
func (*forgottenRun) WithFiles(string, string) []string { return nil }

func (f *forgottenRun) Recall(_ context.Context, id string) (v1alpha1.WorkflowRunStatus, bool, error) {
	f.recalls++
	at := metav1.NewTime(time.Unix(1000, 0))
	return v1alpha1.WorkflowRunStatus{RunID: id, Phase: v1alpha1.RunDegraded, LogID: "one", LogSequence: 7, FinishedAt: &at}, true, nil
}

func (*forgottenRun) State(context.Context, string) (*workflow.State, uint64, error) {
	return ended(), 7, nil
}

// ended returns the state of an ended run.
func ended() *workflow.State {
	s := new(workflow.State)
	for _, e := range workflow.Start(&workflow.Definition{Tasks: []workflow.Task{{Name: "a", Stage: workflow.StageMain, Steps: []workflow.Step{{Kind: "Do"}}}}}, "", time.Unix(1, 0)) {
		s.Apply(e, time.Unix(1, 0))
	}
	s.Apply(workflow.Ended{Phase: v1alpha1.RunDegraded}, time.Unix(2, 0))
	return s
}

func (f *forgottenRun) Discard(id string) error {
	f.discarded = append(f.discarded, id)
	return errors.New("the volume is away")
}

// TestAForgottenRunIsLeftAlone checks that a forgotten run is not started or prepared again (there is no definer), and
// neither stranded nor waited for. Its WorkflowRun can be deleted, and the run's files are discarded if possible.
func TestAForgottenRunIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		told    v1alpha1.RunPhase
		adopted bool
		// refused means that the status has the reason why an earlier generation was refused.
		refused bool
	}{
		"its end was told": {told: v1alpha1.RunDegraded}, "it was not": {told: v1alpha1.RunRunning}, "nothing was": {},
		"adopted, its end was told": {told: v1alpha1.RunDegraded, adopted: true}, "adopted, nothing was": {adopted: true},
		"refused, corrected, and restored from a backup": {refused: true}, "adopted after it was refused": {adopted: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789", Generation: 1, Finalizers: []string{finalizer}}}
			w.Spec.Suspend = true // it is too late for that
			if c.adopted {
				w.Annotations = map[string]string{v1alpha1.RunAnnotation: "fleet/up/3"}
			}
			id, _, _ := w.LogID()
			view, want := &forgottenRun{}, 1
			w.Status.Phase = c.told
			if c.told == v1alpha1.RunDegraded {
				w.Status, _, _ = view.Recall(t.Context(), id)
				want, view.recalls = 0, 0
			} else if c.refused {
				at := metav1.NewTime(time.Unix(500, 0))
				w.Status = v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunFailed, Message: "refused", FinishedAt: &at}
			} else if c.told != "" {
				w.Status.RunID = id
			}
			api := controllertest.Client(t, w)
			r := &Reconciler{Base: controllertest.Base(api), Runs: view}
			r.Quota = func(string) string { return "its quota" }
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}
			for range 3 {
				if _, err := r.Reconcile(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			if err := api.Get(t.Context(), req.NamespacedName, w); err != nil {
				t.Fatal(err)
			}
			if s := w.Status; s.Phase != v1alpha1.RunDegraded || s.FinishedAt == nil || s.LogSequence != 7 || s.RunID != id || view.recalls != want {
				t.Errorf("the log was read %d times; status = %+v", view.recalls, s)
			}
			if err := api.Delete(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if err := api.Get(t.Context(), req.NamespacedName, w); !apierrors.IsNotFound(err) {
				t.Errorf("the WorkflowRun still exists: Get = %v", err)
			}
			if !slices.Equal(view.discarded, []string{id}) {
				t.Errorf("discarded %v", view.discarded)
			}
		})
	}
}

// lostRun is a log that does not contain a run that was started.
type lostRun struct{ domain }

func (lostRun) Summary(string) (workflow.Summary, bool) { return workflow.Summary{}, false }
func (lostRun) Open(string, string) []string            { return nil }
func (lostRun) Status(string) (s v1alpha1.WorkflowRunStatus, known bool) {
	return s, false
}
func (lostRun) WithFiles(string, string) []string { return nil }
func (lostRun) Recall(context.Context, string) (s v1alpha1.WorkflowRunStatus, ended bool, err error) {
	return s, false, nil
}

// TestALostRunIsNotBegunAgain checks that the status of a run that the log does not contain remains while the namespace
// is at its quota or the spec cannot be read, because only the status shows that the run was started.
func TestALostRunIsNotBegunAgain(t *testing.T) {
	for name, change := range map[string]func(*Reconciler, *v1alpha1.WorkflowRun){
		"at its quota": func(r *Reconciler, _ *v1alpha1.WorkflowRun) { r.Quota = func(string) string { return "its quota" } },
		"of another version": func(_ *Reconciler, w *v1alpha1.WorkflowRun) {
			w.Unreadable.Spec = &v1alpha1.UnreadablePart{Field: "spec.tasks", Problem: "is new"}
		},
	} {
		w := &v1alpha1.WorkflowRun{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "up", UID: "0123456789", Generation: 1, Finalizers: []string{finalizer}}}
		id, _, _ := w.LogID()
		w.Status.Phase, w.Status.RunID = v1alpha1.RunRunning, id
		api := controllertest.Client(t, w)
		r := &Reconciler{Base: controllertest.Base(nil), Runs: lostRun{}}
		r.Client = interceptor.NewClient(api, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if got, ok := o.(*v1alpha1.WorkflowRun); ok {
				change(r, got)
			}
			return err
		}})
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
			t.Fatal(err)
		}
		if s := w.Status; s.RunID != id || s.Phase != v1alpha1.RunStranded {
			t.Errorf("%s: status = %+v, with which the run would be started again", name, s)
		}
	}
}
