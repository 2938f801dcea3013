package pause

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/supervise"
	"scute.dev/pause/request"
)

// finalizer keeps a Pause until the objects that it paused are restored.
const finalizer = "scute.dev/pause"

type domain interface {
	resource.Objects[v1alpha1.PauseStatus]
	Request(ctx context.Context, id, actor string, spec request.Spec) error
	Release(ctx context.Context, id, actor, reason string) error
}

// Reconciler reconciles Pauses with the log.
type Reconciler struct {
	resource.Base
	Pauses domain
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.Setup(mgr, &v1alpha1.Pause{}, r, controller.Options{})
}

// Reconcile records the spec in the log and writes the view into the status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p v1alpha1.Pause
	if err := client.IgnoreNotFound(r.Client.Get(ctx, req.NamespacedName, &p)); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.orphans(ctx, req, &p); err != nil || p.UID == "" {
		return ctrl.Result{}, err
	}
	id := v1alpha1.LogID(&p)
	ended := p.Status.FinishedAt != nil && p.Status.PauseID == id
	status, known, err := resource.LatestStatus(ctx, r.Pauses, id, &p.Status, ended)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.release(ctx, &p, id, status, known)
	}
	if wrong := invalidPart(&p); wrong != nil && !known {
		return ctrl.Result{}, r.publish(ctx, &p, waitingStatus(&p, wrong.String(), resource.Remedy))
	}
	if set, err := resource.AddFinalizer(ctx, r.Client, &p, finalizer); set || err != nil {
		// The watch requeues the Pause at once. Nothing is paused before the finalizer is set.
		return ctrl.Result{}, err
	}
	if why := r.Quota.Throttled(p.Namespace); !known && p.Status.PauseID == "" && why != (supervise.Throttled{}) {
		return ctrl.Result{RequeueAfter: supervise.RecheckInterval}, r.write(ctx, &p, v1alpha1.PauseStatus{}, why)
	}
	if !known {
		return ctrl.Result{}, r.request(ctx, &p, id) // the view requeues the Pause when it contains the request
	}
	return ctrl.Result{}, r.publish(ctx, &p, status)
}

// orphans releases the pauses in the log whose Pause was deleted, or replaced by another Pause with the same name.
func (r *Reconciler) orphans(ctx context.Context, req ctrl.Request, p *v1alpha1.Pause) error {
	name := resource.Orphans{Kind: "Pause", Key: req.NamespacedName, UID: p.UID, Open: r.Pauses.Open(req.Namespace, req.Name), Own: v1alpha1.LogID(p)}
	return name.End(ctx, r.Live, r.Pauses.Release)
}

func (r *Reconciler) request(ctx context.Context, p *v1alpha1.Pause, id string) error {
	spec, err := specOf(p)
	if err != nil {
		return r.publish(ctx, p, waitingStatus(p, "spec.selector: "+err.Error(), resource.Remedy))
	}
	err = r.Pauses.Request(ctx, id, resource.Actor(client.ObjectKeyFromObject(p)), spec)
	return resource.RequestError(err, func(message, next string) error {
		return r.publish(ctx, p, waitingStatus(p, message, next))
	})
}

// waitingStatus returns the status of a Pause that has not started. It keeps PauseID, because if
// the log has lost the pause, release can see only from PauseID that the pause had started.
func waitingStatus(p *v1alpha1.Pause, message, next string) v1alpha1.PauseStatus {
	status := v1alpha1.PauseStatus{Message: message, Next: next}
	if p.Status.FinishedAt == nil {
		status.PauseID = p.Status.PauseID
	}
	return status
}

// release removes the finalizer of a deleted Pause when its pause has ended. A pause that had
// started but is not in the log is first requested again. The Clusters record their state before
// the pause, so it can then be restored.
func (r *Reconciler) release(ctx context.Context, p *v1alpha1.Pause, id string, status v1alpha1.PauseStatus, known bool) error {
	if !known && p.Status.PauseID != "" && p.Status.FinishedAt == nil {
		return r.request(ctx, p, id)
	}
	if known && status.FinishedAt == nil {
		if err := r.Pauses.Release(ctx, id, resource.Actor(client.ObjectKeyFromObject(p)), "the Pause was deleted"); err != nil {
			return fmt.Errorf("recording the release: %w", err)
		}
		return r.publish(ctx, p, status)
	}
	if known {
		if err := r.publish(ctx, p, status); err != nil {
			return err
		}
	}
	return resource.RemoveFinalizer(ctx, r.Client, p, finalizer)
}

func (r *Reconciler) publish(ctx context.Context, p *v1alpha1.Pause, status v1alpha1.PauseStatus) error {
	return r.write(ctx, p, status, r.Pauses.Throttled(v1alpha1.LogID(p)))
}

func (r *Reconciler) write(ctx context.Context, p *v1alpha1.Pause, status v1alpha1.PauseStatus, why supervise.Throttled) error {
	before := p.DeepCopy()
	status.ObservedGeneration = p.Generation
	status.Message = cmp.Or(why.Message, status.Message)
	status.Conditions = resource.WithThrottled(kstatus(p.Status.Conditions, status, p.Generation), why, p.Generation)
	if wrong := invalidPart(p); status.Phase == "" && wrong != nil {
		status.Conditions = resource.Ignored(p.Status.Conditions, p.Generation, wrong)
	}
	p.Status = status
	if written, err := resource.Publish(ctx, r.Client, r.Recorder, before, p, &p.Status.Conditions); !written {
		return err
	}
	if before.Status.Phase != p.Status.Phase {
		kind := corev1.EventTypeNormal
		if p.Status.Phase == v1alpha1.PauseTimedOut || p.Status.FinishedAt != nil && p.Status.Counts.StillPaused+p.Status.Counts.Pending > 0 {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(p, nil, kind, string(p.Status.Phase), "Pause", "%s", resource.TruncateNote(p.Status.Message))
	}
	return nil
}
