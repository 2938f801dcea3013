package controller

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/controllers/resource"
	"scute.dev/internal/supervise"
	"scute.dev/view"
)

// Schedules is the part of package backup/runner that the controller uses.
type Schedules interface {
	resource.Objects[v1alpha1.BackupScheduleStatus]
	Configure(ctx context.Context, id, actor string, spec schedule.Spec, asked string) error
	End(ctx context.Context, id, actor, reason string) error
	ReadState(id string, fn func(*schedule.State))
}

// Reconciler reconciles BackupSchedules with the log.
type Reconciler struct {
	resource.Base
	Schedules Schedules
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.Setup(mgr, &v1alpha1.BackupSchedule{}, r, controller.Options{})
}

// Reconcile records the spec in the log and writes the view into the status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var b v1alpha1.BackupSchedule
	if err := client.IgnoreNotFound(r.Client.Get(ctx, req.NamespacedName, &b)); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.orphans(ctx, req, &b); err != nil || b.UID == "" || !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	id := v1alpha1.LogID(&b)
	wrong := invalidPart(&b)
	why := r.Schedules.Throttled(id)
	again := r.overdue(id)
	if wrong == nil {
		spec, err := Spec(&b)
		if err != nil {
			wrong = &v1alpha1.UnreadablePart{Field: "spec.clusters.selector", Problem: err.Error()}
		} else if asked, told := r.isRecorded(&b, id); !told {
			if over := r.Quota.Throttled(b.Namespace); over != (supervise.Throttled{}) {
				why, again = over, supervise.RecheckInterval
			} else if err := r.Schedules.Configure(ctx, id, resource.Actor(client.ObjectKeyFromObject(&b)), spec, asked); err != nil {
				return ctrl.Result{}, fmt.Errorf("recording the spec: %w", err)
			}
		}
	}
	return ctrl.Result{RequeueAfter: again}, r.publish(ctx, &b, id, wrong, why)
}

// overdue returns the time after which the next backup counts as missed, which must then be
// published, or 0 if no backup is due.
func (r *Reconciler) overdue(id string) (wait time.Duration) {
	now := time.Now()
	r.Schedules.ReadState(id, func(s *schedule.State) {
		if s == nil {
			return
		}
		if due := schedule.NextDue(s, now).At; !due.IsZero() {
			wait = due.Add(time.Duration(s.Spec.StartingDeadline)).Sub(now) + time.Second
		}
	})
	return wait
}

// orphans ends the schedules in the log whose BackupSchedule was deleted, is being deleted, or was
// replaced by another BackupSchedule with the same name.
func (r *Reconciler) orphans(ctx context.Context, req ctrl.Request, b *v1alpha1.BackupSchedule) error {
	name := resource.Orphans{Kind: "BackupSchedule", Key: req.NamespacedName, UID: b.UID, Open: r.Schedules.Open(req.Namespace, req.Name)}
	if b.DeletionTimestamp.IsZero() {
		name.Own = v1alpha1.LogID(b)
	}
	return name.End(ctx, r.Live, r.Schedules.End)
}

func (r *Reconciler) isRecorded(b *v1alpha1.BackupSchedule, id string) (asked string, isRecorded bool) {
	asked = view.Truncate(b.Annotations[v1alpha1.AnnotationBackUpNow], maxRequestLength)
	r.Schedules.ReadState(id, func(s *schedule.State) {
		isRecorded = s != nil && s.Spec.Generation == b.Generation && (asked == "" || s.LastRequest == asked)
	})
	return asked, isRecorded
}

// maxRequestLength bounds the annotation's value in the log, in bytes.
const maxRequestLength = 128

const missedReason = "Missed"

// publish writes the view into the status. An invalid spec has no effect, because the last valid
// spec in the log stays in use.
func (r *Reconciler) publish(ctx context.Context, b *v1alpha1.BackupSchedule, id string, wrong *v1alpha1.UnreadablePart, why supervise.Throttled) error {
	status, known, err := r.status(ctx, id)
	if err != nil {
		return err
	}
	if !known && wrong == nil && why.Reason == "" {
		return nil // the view triggers a reconcile when it contains the schedule
	}
	before := b.DeepCopy()
	reason := ""
	r.Schedules.ReadState(id, func(s *schedule.State) {
		switch {
		case s == nil:
		case status.Phase == v1alpha1.BackupFailing:
			reason = s.Problem.Reason
		case status.Phase == v1alpha1.BackupScheduled && !schedule.Missed(s, time.Now()).IsZero():
			reason = missedReason
		}
	})
	reason = cmp.Or(reason, string(status.Phase))
	switch {
	case wrong != nil:
		status.Message, status.Next = wrong.String(), resource.Remedy
		if known {
			status.Message += fmt.Sprintf("; the spec of generation %d stays in use", status.ObservedGeneration)
		}
		status.Conditions = resource.Ignored(b.Status.Conditions, b.Generation, wrong)
	case !known:
		status.Message, status.Conditions = why.Message, b.Status.Conditions
	default:
		status.Conditions = kstatus(b.Status.Conditions, status, reason, b.Generation)
	}
	status.Conditions = resource.WithThrottled(status.Conditions, why, b.Generation)
	b.Status = status
	if written, err := resource.Publish(ctx, r.Client, r.Recorder, before, b, &b.Status.Conditions); !written {
		return err
	}
	r.recordEvents(b, before, reason)
	return nil
}

// status returns the status from the view, or from the log if the view has dropped an ended
// schedule. A schedule ends only when its resource is deleted. If the resource exists nevertheless,
// it was restored, and the status must show that no backups are made.
func (r *Reconciler) status(ctx context.Context, id string) (status v1alpha1.BackupScheduleStatus, known bool, err error) {
	status, known, err = resource.LatestStatus(ctx, r.Schedules, id, nil, false)
	if status.Phase == v1alpha1.BackupEnded {
		status.Message = "no backups are made: according to the event log, this BackupSchedule was deleted, but it exists again"
		status.Next = "delete it, and create it again"
	}
	return status, known, err
}

func (r *Reconciler) recordEvents(b, before *v1alpha1.BackupSchedule, reason string) {
	now, was := b.Status, before.Status
	switch {
	case now.LastSuccessfulTime != nil && !now.LastSuccessfulTime.Equal(was.LastSuccessfulTime) && len(now.Backups) > 0:
		r.Recorder.Eventf(b, nil, corev1.EventTypeNormal, "BackedUp", "BackUp", "%s", resource.TruncateNote("backup "+now.Backups[0].ID+" is complete: "+now.Backups[0].Path))
	case now.Phase == v1alpha1.BackupFailing && (was.Phase != now.Phase || was.Message != now.Message):
		r.Recorder.Eventf(b, nil, corev1.EventTypeWarning, reason, "BackUp", "%s", resource.TruncateNote(now.Message))
	}
}
