package backupschedule

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/catchup"
	"scute.dev/controllers/changes"
	"scute.dev/controllers/conditions"
	"scute.dev/controllers/orphans"
	"scute.dev/internal/fair"
	"scute.dev/internal/supervise"
	"scute.dev/mover/schedule"
)

// Schedules is what the controller needs of the domain.
type Schedules interface {
	Configure(ctx context.Context, id, actor string, spec schedule.Spec, asked string) error
	End(ctx context.Context, id, actor, reason string) error
	Status(id string, now time.Time) (v1alpha1.BackupScheduleStatus, bool)
	// Recall reads from the log how a schedule ended that the view has forgotten; false for one that has not ended, or is not there.
	Recall(ctx context.Context, id string, now time.Time) (v1alpha1.BackupScheduleStatus, bool, error)
	Look(id string, fn func(*schedule.State))
	Open(namespace, name string) []string
	Throttled(id string) supervise.Throttled
}

// Reconciler brings BackupSchedules and the log together.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server, past the cache.
	Live      client.Reader
	Recorder  events.EventRecorder
	Schedules Schedules
	// CaughtUp is closed when the view holds all that the log held at the start. Before that nothing is concluded from a schedule's
	// absence.
	CaughtUp <-chan struct{}
	behind   catchup.Wait
	// Changes are the ids of what has changed in the view.
	Changes *changes.Changes[string]
	// Quota is that of each namespace.
	Quota supervise.Quota
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.BackupSchedule{}).
		WithOptions(controller.Options{NewQueue: fair.Requests}).
		WatchesRawSource(changes.OfResources(r.Changes)).
		Complete(r)
}

// Reconcile hands the intent to the log and writes the view into the status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if pause, wait := r.behind.Later(r.CaughtUp); wait {
		return ctrl.Result{RequeueAfter: pause}, nil
	}
	var b v1alpha1.BackupSchedule
	if err := r.Client.Get(ctx, req.NamespacedName, &b); err != nil && !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	if err := r.orphans(ctx, req, &b); err != nil || b.UID == "" || !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, err
	}
	id := v1alpha1.LogID(&b)
	wrong := refusal(&b)
	why := r.Schedules.Throttled(id)
	again := r.overdue(id)
	if wrong == nil {
		spec, err := Spec(&b)
		if err != nil {
			wrong = &v1alpha1.UnreadablePart{Field: "spec.clusters.selector", Problem: err.Error()}
		} else if asked, told := r.told(&b, id); !told {
			if over := r.Quota.Throttled(b.Namespace); over != (supervise.Throttled{}) {
				why, again = over, supervise.LookAgain
			} else if err := r.Schedules.Configure(ctx, id, "resource/"+b.Namespace+"/"+b.Name, spec, asked); err != nil {
				return ctrl.Result{}, fmt.Errorf("recording what is asked for: %w", err)
			}
		}
	}
	return ctrl.Result{RequeueAfter: again}, r.publish(ctx, &b, id, wrong, why)
}

// overdue is in which time the next backup is missed unless something happens, which is told then; zero for none.
func (r *Reconciler) overdue(id string) (wait time.Duration) {
	now := r.now()
	r.Schedules.Look(id, func(s *schedule.State) {
		if s == nil {
			return
		}
		if due := schedule.NextDue(s, now).At; !due.IsZero() {
			wait = due.Add(time.Duration(s.Spec.StartingDeadline)).Sub(now) + time.Second
		}
	})
	return wait
}

// orphans ends what the log still has of a schedule that is gone or being deleted, or of an earlier one of the same name.
func (r *Reconciler) orphans(ctx context.Context, req ctrl.Request, b *v1alpha1.BackupSchedule) error {
	name := orphans.Name{Kind: "BackupSchedule", Key: req.NamespacedName, UID: b.UID, Open: r.Schedules.Open(req.Namespace, req.Name)}
	if b.DeletionTimestamp.IsZero() {
		name.Own = v1alpha1.LogID(b)
	}
	return name.End(ctx, r.Live, func(id, reason string) error { return r.Schedules.End(ctx, id, "resource/"+req.String(), reason) })
}

// told says that the log knows what is asked for.
func (r *Reconciler) told(b *v1alpha1.BackupSchedule, id string) (asked string, told bool) {
	asked = conditions.Cut(b.Annotations[v1alpha1.AnnotationBackUpNow], longestRequest)
	r.Schedules.Look(id, func(s *schedule.State) {
		told = s != nil && s.Spec.Generation == b.Generation && (asked == "" || s.Asked == asked)
	})
	return asked, told
}

// longestRequest bounds what the log keeps of the value of an annotation.
const longestRequest = 128

// missed is the reason of a schedule whose last time passed without a backup.
const missed = "Missed"

// publish writes the view into the status. A spec that is wrong is not used: what the log was told before continues.
func (r *Reconciler) publish(ctx context.Context, b *v1alpha1.BackupSchedule, id string, wrong *v1alpha1.UnreadablePart, why supervise.Throttled) error {
	status, known, err := r.status(ctx, id)
	if err != nil {
		return err
	}
	if !known && wrong == nil && why.Reason == "" {
		return nil // the view says when it is there
	}
	before := b.DeepCopy()
	reason := ""
	r.Schedules.Look(id, func(s *schedule.State) {
		switch {
		case s == nil:
		case status.Phase == v1alpha1.BackupFailing:
			reason = s.Problem.Reason
		case status.Phase == v1alpha1.BackupScheduled && !schedule.Missed(s, r.now()).IsZero():
			reason = missed
		}
	})
	if reason == "" {
		reason = string(status.Phase)
	}
	switch {
	case wrong != nil:
		status.Message, status.Next = wrong.String(), conditions.Remedy
		if known {
			status.Message += fmt.Sprintf("; the spec of generation %d is used", status.ObservedGeneration)
		}
		status.Conditions = conditions.Refused(b.Status.Conditions, b.Generation, wrong)
	case !known:
		status.Message, status.Conditions = why.Message, b.Status.Conditions
	default:
		status.Conditions = said(b.Status.Conditions, status, reason, b.Generation)
	}
	status.Conditions = conditions.Throttled(status.Conditions, why, b.Generation)
	b.Status = status
	if written, err := conditions.Publish(ctx, r.Client, r.Recorder, before, b, &b.Status.Conditions); !written {
		return err
	}
	r.tell(b, before, reason)
	return nil
}

// status is the log's view of a schedule. One that the view does not know may have ended, and be forgotten since: then it is in
// the log. A schedule has ended because its resource was gone, so one that is here was restored, and nobody must think that it backs up.
func (r *Reconciler) status(ctx context.Context, id string) (status v1alpha1.BackupScheduleStatus, known bool, err error) {
	if status, known = r.Schedules.Status(id, r.now()); !known {
		status, known, err = r.Schedules.Recall(ctx, id, r.now())
		if err != nil {
			return status, false, fmt.Errorf("looking for the schedule %s in the log: %w", id, err)
		}
	}
	if status.Phase == v1alpha1.BackupEnded {
		status.Message = "no backup is made: this BackupSchedule was deleted, as the event log has it, and is here again"
		status.Next = "delete it, and create it again"
	}
	return status, known, nil
}

// tell makes an Event of what has happened: a backup that is complete, or one that failed.
func (r *Reconciler) tell(b, before *v1alpha1.BackupSchedule, reason string) {
	now, was := b.Status, before.Status
	switch {
	case now.LastSuccessfulTime != nil && !now.LastSuccessfulTime.Equal(was.LastSuccessfulTime) && len(now.Backups) > 0:
		r.Recorder.Eventf(b, nil, corev1.EventTypeNormal, "BackedUp", "BackUp", "%s", conditions.Short("backup "+now.Backups[0].ID+" is complete: "+now.Backups[0].Place))
	case now.Phase == v1alpha1.BackupFailing && (was.Phase != now.Phase || was.Message != now.Message):
		r.Recorder.Eventf(b, nil, corev1.EventTypeWarning, reason, "BackUp", "%s", conditions.Short(now.Message))
	}
}

func (r *Reconciler) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}
