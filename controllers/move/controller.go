package move

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/supervise"
	"scute.dev/mover"
)

// finalizer keeps a Move until its move has ended.
const finalizer = "scute.dev/move"

type domain interface {
	resource.Objects[v1alpha1.MoveStatus]
	Request(ctx context.Context, id, actor string, spec mover.Spec) error
	Abort(ctx context.Context, id, actor, reason string) error
	Recover(ctx context.Context, id, actor string, spec mover.Spec, lost mover.LogLost) error
	Abandon(ctx context.Context, id, actor, reason string) error
}

// Reconciler reconciles Moves with the log.
type Reconciler struct {
	resource.Base
	Moves domain
	// LogID is the ID of the event log that this daemon writes.
	LogID string
	pace  resource.Pace
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.Setup(mgr, &v1alpha1.Move{}, r, controller.Options{})
}

// Reconcile records the spec in the log and writes the view into the status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var m v1alpha1.Move
	if err := client.IgnoreNotFound(r.Client.Get(ctx, req.NamespacedName, &m)); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.orphans(ctx, req, &m); err != nil || m.UID == "" {
		return ctrl.Result{}, err
	}
	id := v1alpha1.LogID(&m)
	status, known, err := resource.LatestStatus(ctx, r.Moves, id, &m.Status, m.Status.FinishedAt != nil)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !m.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, &m, id, status, known)
	}
	if wrong := m.Unreadable.Spec; wrong != nil && !known {
		return ctrl.Result{}, r.publish(ctx, &m, v1alpha1.MoveStatus{
			// hasStarted needs these fields if the log has lost the move.
			Phase: m.Status.Phase, LogID: m.Status.LogID, LogSequence: m.Status.LogSequence, Message: wrong.String(), Next: resource.Remedy,
		})
	}
	if set, err := resource.AddFinalizer(ctx, r.Client, &m, finalizer); set || err != nil {
		// The watch requeues the Move at once. No move starts before the finalizer is set.
		return ctrl.Result{}, err
	}
	if why := r.Quota.Throttled(m.Namespace); !known && !r.hasStarted(&m) && why != (supervise.Throttled{}) {
		return ctrl.Result{RequeueAfter: supervise.RecheckInterval}, r.write(ctx, &m, v1alpha1.MoveStatus{LogID: m.Status.LogID}, why)
	}
	if !known {
		return ctrl.Result{}, r.request(ctx, &m, id) // the view requeues the Move when it contains the move
	}
	if m.Spec.AbandonTarget && known && status.FinishedAt == nil {
		if err := r.Moves.Abandon(ctx, id, resource.Actor(req.NamespacedName), "spec.abandonTarget is set"); err != nil {
			return ctrl.Result{}, fmt.Errorf("recording that the target was abandoned: %w", err)
		}
	}
	if m.Spec.Abort && known && status.FinishedAt == nil {
		if err := r.Moves.Abort(ctx, id, resource.Actor(req.NamespacedName), "spec.abort is set"); err != nil {
			return ctrl.Result{}, fmt.Errorf("recording the abort: %w", err)
		}
	}
	if wait := r.pace.Delay(req.NamespacedName, string(status.Phase), resource.PublishInterval); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return ctrl.Result{}, r.publish(ctx, &m, status)
}

// orphans aborts the moves in the log whose Move was deleted, or replaced by another Move with the same name.
func (r *Reconciler) orphans(ctx context.Context, req ctrl.Request, m *v1alpha1.Move) error {
	name := resource.Orphans{Kind: "Move", Key: req.NamespacedName, UID: m.UID, Open: r.Moves.Open(req.Namespace, req.Name), Own: v1alpha1.LogID(m)}
	return name.End(ctx, r.Live, r.Moves.Abort)
}

// hasStarted reports whether a Move that is not in the log had started.
func (r *Reconciler) hasStarted(m *v1alpha1.Move) bool {
	return m.Status.Phase != "" || m.Status.LogSequence > 0 || m.Status.LogID != "" && m.Status.LogID != r.LogID
}

// request records the request of a move that is not in the log. It first writes the log's ID into
// the status. If the move had already started, or the status contains the ID of another log, the
// log was lost or replaced. In that case request records the loss instead of starting the move
// again.
func (r *Reconciler) request(ctx context.Context, m *v1alpha1.Move, id string) error {
	actor := resource.Actor(client.ObjectKeyFromObject(m))
	if r.hasStarted(m) {
		lost := mover.LogLost{Log: m.Status.LogID, Phase: m.Status.Phase, Sequence: uint64(max(m.Status.LogSequence, 0))} //nolint:gosec // never negative
		if err := r.Moves.Recover(ctx, id, actor, Spec(m), lost); err != nil {
			return fmt.Errorf("recording that the log of the move was lost: %w", err)
		}
		return nil
	}
	if m.Status.LogID != r.LogID {
		before := m.DeepCopy()
		m.Status.LogID = r.LogID
		return client.IgnoreNotFound(r.Client.Status().Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	}
	return resource.RequestError(r.Moves.Request(ctx, id, actor, Spec(m)), func(message, next string) error {
		return r.publish(ctx, m, v1alpha1.MoveStatus{LogID: m.Status.LogID, Message: message, Next: next})
	})
}

// release removes the finalizer of a deleted Move when its move has ended. It aborts a move in
// progress, if that is still possible.
func (r *Reconciler) release(ctx context.Context, m *v1alpha1.Move, id string, status v1alpha1.MoveStatus, known bool) error {
	if !known && m.Status.FinishedAt == nil && m.Status.Phase != "" {
		return r.request(ctx, m, id)
	}
	if known && status.FinishedAt == nil && m.Spec.AbandonTarget {
		if err := r.Moves.Abandon(ctx, id, resource.Actor(client.ObjectKeyFromObject(m)), "spec.abandonTarget is set"); err != nil {
			return fmt.Errorf("recording that the target was abandoned: %w", err)
		}
		return r.publish(ctx, m, status)
	}
	if known && status.FinishedAt == nil {
		if err := r.Moves.Abort(ctx, id, resource.Actor(client.ObjectKeyFromObject(m)), "the Move was deleted"); err != nil {
			return fmt.Errorf("recording the abort: %w", err)
		}
		return r.publish(ctx, m, status)
	}
	r.pace.Forget(client.ObjectKeyFromObject(m))
	return resource.RemoveFinalizer(ctx, r.Client, m, finalizer)
}

func (r *Reconciler) publish(ctx context.Context, m *v1alpha1.Move, status v1alpha1.MoveStatus) error {
	return r.write(ctx, m, status, r.Moves.Throttled(v1alpha1.LogID(m)))
}

func (r *Reconciler) write(ctx context.Context, m *v1alpha1.Move, status v1alpha1.MoveStatus, why supervise.Throttled) error {
	before := m.DeepCopy()
	status.ObservedGeneration = m.Generation
	status.Message = cmp.Or(why.Message, status.Message)
	status.Conditions = resource.WithThrottled(kstatus(m.Status.Conditions, status, m.Generation), why, m.Generation)
	if status.MoveID == "" && m.Unreadable.Spec != nil {
		status.Conditions = resource.Ignored(m.Status.Conditions, m.Generation, m.Unreadable.Spec)
	}
	m.Status = status
	if written, err := resource.Publish(ctx, r.Client, r.Recorder, before, m, &m.Status.Conditions); !written {
		return err
	}
	if before.Status.Phase != m.Status.Phase {
		kind := corev1.EventTypeNormal
		switch m.Status.Phase {
		case mover.PhaseFailed, mover.PhaseRollingBack, mover.PhaseRolledBack:
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(m, nil, kind, string(m.Status.Phase), "Move", "%s", resource.TruncateNote(m.Status.Message))
	}
	return nil
}

// kstatus returns the conditions of a Move: Reconciling while the move continues, Stalled if it
// needs a user, and Ready if it ended as requested.
func kstatus(old []metav1.Condition, s v1alpha1.MoveStatus, generation int64) []metav1.Condition {
	over := s.FinishedAt != nil
	reason := string(s.Phase)
	if s.Stranded {
		reason = "Stranded"
	}
	return resource.Kstatus(old, generation, reason,
		resource.Value{True: s.Phase == mover.PhaseSucceeded && s.Next == "", Message: s.Message},
		resource.Value{True: !over && !s.Stranded && s.Phase != mover.PhaseFailed, Message: s.Message},
		resource.Value{True: s.Next != "" && (s.Stranded || over || s.Phase == mover.PhaseFailed), Message: s.Next})
}
