package pause

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
	"scute.dev/pause/request"
)

// forgottenPause is a log with an ended pause, and a view that has forgotten it. No other method may be called.
type forgottenPause struct {
	domain
	recalls int
}

func (*forgottenPause) Status(string) (v1alpha1.PauseStatus, bool) {
	return v1alpha1.PauseStatus{}, false
}
func (*forgottenPause) Throttled(string) supervise.Throttled { return supervise.Throttled{} }
func (*forgottenPause) Open(string, string) []string         { return nil }
func (f *forgottenPause) Recall(_ context.Context, id string) (v1alpha1.PauseStatus, bool, error) {
	f.recalls++
	at := metav1.NewTime(time.Unix(1000, 0))
	return v1alpha1.PauseStatus{PauseID: id, Phase: v1alpha1.PauseReleased, LogID: "one", LogSequence: 7, FinishedAt: &at}, true, nil
}

// TestAForgottenPauseIsLeftAlone checks that a forgotten pause is not started again, and that its Pause can be deleted.
func TestAForgottenPauseIsLeftAlone(t *testing.T) {
	for name, told := range map[string]v1alpha1.PausePhase{"its end was told": v1alpha1.PauseReleased, "it was not": v1alpha1.PauseResuming, "nothing was": ""} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "maintenance", UID: "0123456789", Generation: 1, Finalizers: []string{finalizer}}}
			view, want := &forgottenPause{}, 1
			p.Status.Phase = told
			if told == v1alpha1.PauseReleased {
				p.Status, _, _ = view.Recall(t.Context(), v1alpha1.LogID(p))
				want, view.recalls = 0, 0
			} else if told != "" {
				p.Status.PauseID = v1alpha1.LogID(p)
			}
			c := controllertest.Client(t, p)
			r := &Reconciler{Base: controllertest.Base(c), Pauses: view}
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}
			for range 3 {
				if _, err := r.Reconcile(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Get(t.Context(), req.NamespacedName, p); err != nil {
				t.Fatal(err)
			}
			if s := p.Status; s.Phase != v1alpha1.PauseReleased || s.FinishedAt == nil || s.LogSequence != 7 || view.recalls != want {
				t.Errorf("the log was read %d times; status = %+v", view.recalls, s)
			}
			if err := c.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), req.NamespacedName, p); !apierrors.IsNotFound(err) {
				t.Errorf("the Pause still exists: Get = %v", err)
			}
		})
	}
}

// fullLog is a log that does not contain a pause that was started, and accepts nothing new.
type fullLog struct{ forgottenPause }

func (fullLog) Recall(context.Context, string) (s v1alpha1.PauseStatus, over bool, err error) {
	return s, false, nil
}

func (fullLog) Request(context.Context, string, string, request.Spec) error { return eventlog.ErrFull }

// TestALostPauseIsNotLeftOnItsClusters checks that a deleted Pause is kept until the log accepts it again and restores
// what it paused.
func TestALostPauseIsNotLeftOnItsClusters(t *testing.T) {
	p := &v1alpha1.Pause{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "maintenance", UID: "0123456789", Generation: 1, Finalizers: []string{finalizer}}}
	p.Status.PauseID, p.Status.Phase = v1alpha1.LogID(p), v1alpha1.PauseAcknowledged
	c := controllertest.Client(t, p)
	if err := c.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Base: controllertest.Base(c), Pauses: &fullLog{}}
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); !errors.Is(err, eventlog.ErrFull) {
			t.Errorf("Reconcile = %v, want ErrFull", err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.Status.PauseID != v1alpha1.LogID(p) || p.Status.Message == "" {
		t.Errorf("Get = %v, status = %+v", err, p.Status)
	}
}
