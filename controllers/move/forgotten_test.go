package move

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// forgottenMove is a log with an ended move, and a view that has forgotten it. No other method may be called.
type forgottenMove struct {
	domain
	err     error
	recalls int
}

func (*forgottenMove) Status(string) (v1alpha1.MoveStatus, bool) { return v1alpha1.MoveStatus{}, false }
func (*forgottenMove) Throttled(string) supervise.Throttled      { return supervise.Throttled{} }
func (*forgottenMove) Open(string, string) []string              { return nil }
func (f *forgottenMove) Recall(_ context.Context, id string) (v1alpha1.MoveStatus, bool, error) {
	f.recalls++
	at := metav1.NewTime(time.Unix(1000, 0))
	return v1alpha1.MoveStatus{MoveID: id, Phase: mover.PhaseSucceeded, LogID: "one", LogSequence: 7, FinishedAt: &at}, f.err == nil, f.err
}

// TestAForgottenMoveIsLeftAlone checks that the final status of a forgotten move remains, and that the log is read once
// if the status is not final.
func TestAForgottenMoveIsLeftAlone(t *testing.T) {
	for name, told := range map[string]mover.Phase{"its end was told": mover.PhaseSucceeded, "it was not": mover.PhaseDeleting, "nothing was": ""} {
		t.Run(name, func(t *testing.T) {
			view := &forgottenMove{}
			r, c, m := newReconciling(t, view)
			m.Spec.Abort, m.Spec.AbandonTarget = true, true // it is too late for that
			if err := c.Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			m.Status.Phase = told
			want := 1
			if told == mover.PhaseSucceeded {
				m.Status, _, _ = view.Recall(t.Context(), v1alpha1.LogID(m))
				want, view.recalls = 0, 0
			}
			if err := c.Status().Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
				t.Fatal(err)
			}
			if s := m.Status; s.Phase != mover.PhaseSucceeded || s.FinishedAt == nil || s.LogSequence != 7 || s.MoveID != v1alpha1.LogID(m) || view.recalls != want {
				t.Errorf("the log was read %d times; status = %+v", view.recalls, s)
			}
		})
	}
}

// TestAForgottenMoveIsDeleted checks that a forgotten Move without a final status can be deleted once the log was read.
func TestAForgottenMoveIsDeleted(t *testing.T) {
	view := &forgottenMove{err: errors.New("no log")}
	r, c, m := newReconciling(t, view)
	m.Status.Phase = mover.PhaseDeleting
	if err := errors.Join(c.Status().Update(t.Context(), m), c.Delete(t.Context(), m)); err != nil {
		t.Fatal(err)
	}
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}
	if _, err := r.Reconcile(t.Context(), req); !errors.Is(err, view.err) {
		t.Errorf("without the log: Reconcile = %v", err)
	}
	if err := c.Get(t.Context(), req.NamespacedName, m); err != nil || m.Status.Phase != mover.PhaseDeleting {
		t.Fatalf("without the log: Get = %v, status = %+v", err, m.Status)
	}
	view.err = nil
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), req.NamespacedName, m); !apierrors.IsNotFound(err) {
		t.Errorf("the Move still exists: Get = %v", err)
	}
}

// lostMove is a log that does not contain a move that was started.
type lostMove struct{ forgottenMove }

func (lostMove) Recall(context.Context, string) (s v1alpha1.MoveStatus, over bool, err error) {
	return s, false, nil
}

// TestALostMoveIsNotBegunAgain checks that the status of a Move that the log does not contain remains while its spec
// cannot be read, because only the status shows that the move was started.
func TestALostMoveIsNotBegunAgain(t *testing.T) {
	r, c, m := newReconciling(t, &lostMove{})
	m.Status.Phase, m.Status.LogID, m.Status.LogSequence = mover.PhaseDeleting, "another", 7
	if err := c.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r.Client = interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if got, ok := o.(*v1alpha1.Move); ok {
			got.Unreadable.Spec = &v1alpha1.UnreadablePart{Field: "spec.target", Problem: "is new"}
		}
		return err
	}})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	if s := m.Status; s.Phase != mover.PhaseDeleting || s.LogID != "another" || s.LogSequence != 7 || s.Message == "" {
		t.Errorf("status = %+v, with which the move would be started again", s)
	}
}
