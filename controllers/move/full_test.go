package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/eventlog"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// fullLog is a log that accepts no moves.
type fullLog struct{ domain }

func (fullLog) Request(context.Context, string, string, mover.Spec) error {
	return fmt.Errorf("appending: %w for anything new", eventlog.ErrFull)
}
func (fullLog) Throttled(string) (none supervise.Throttled) { return none }
func (fullLog) Open(string, string) []string                { return nil }
func (fullLog) Status(string) (v1alpha1.MoveStatus, bool)   { return v1alpha1.MoveStatus{}, false }
func (fullLog) Recall(context.Context, string) (v1alpha1.MoveStatus, bool, error) {
	return v1alpha1.MoveStatus{}, false, nil
}

// throttledMove has a move that waits for other moves while why is set.
type throttledMove struct {
	domain
	why supervise.Throttled
}

func (throttledMove) Status(id string) (v1alpha1.MoveStatus, bool) {
	return v1alpha1.MoveStatus{MoveID: id, Phase: mover.PhasePending, Message: "requested"}, true
}
func (throttledMove) Open(string, string) []string           { return nil }
func (c throttledMove) Throttled(string) supervise.Throttled { return c.why }

// newReconciling returns a Reconciler, its client, and a Move with its finalizer.
func newReconciling(t *testing.T, moves domain) (*Reconciler, client.Client, *v1alpha1.Move) {
	t.Helper()
	m := newMove()
	m.Finalizers = []string{finalizer}
	c := controllertest.Client(t, m)
	return &Reconciler{Base: controllertest.Base(c), Moves: moves}, c, m
}

// TestAMoveThatWaitsForOthersSaysSo checks that a Move that waits for others is Throttled, and no longer is when it
// continues.
func TestAMoveThatWaitsForOthersSaysSo(t *testing.T) {
	r, c, m := newReconciling(t, nil)
	for _, step := range []struct {
		why     supervise.Throttled
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{supervise.Throttled{Reason: supervise.TooManyUnfinished, Message: "waits until another move ends"}, metav1.ConditionTrue, supervise.TooManyUnfinished, "waits until another move ends"},
		{supervise.Throttled{}, metav1.ConditionFalse, "NotThrottled", "requested"},
	} {
		r.Moves = throttledMove{why: step.why}
		r.pace.Forget(client.ObjectKeyFromObject(m)) // a second passes
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			t.Fatal(err)
		}
		got := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionThrottled)
		if got == nil || got.Status != step.status || got.Reason != step.reason || m.Status.Message != step.message {
			t.Errorf("condition = %+v, message = %q", got, m.Status.Message)
		}
	}
}

// TestFullLogIsTold checks that a Move that cannot start because the log is full reports what to do, and is retried.
func TestFullLogIsTold(t *testing.T) {
	r, c, m := newReconciling(t, fullLog{})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)}); !errors.Is(err, eventlog.ErrFull) {
		t.Errorf("Reconcile = %v, want ErrFull", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(m.Status.Message, "full") || !strings.Contains(m.Status.Next, "log.maxBytes") {
		t.Errorf("message = %q, next = %q", m.Status.Message, m.Status.Next)
	}
}
