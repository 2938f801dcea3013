package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
)

// finalizer keeps a WorkflowRun until its run has ended and has released what it held.
const finalizer = "scute.dev/workflow"

const (
	// reconcileTimeout bounds a reconcile, because it may request manifests from a cluster.
	reconcileTimeout = 2 * time.Minute
	reconcilers      = 4
)

type domain interface {
	resource.Objects[v1alpha1.WorkflowRunStatus]
	Request(ctx context.Context, id, actor string, d *workflow.Definition) error
	Command(ctx context.Context, id, actor string, in workflow.Input) error
	// State reads a run from the log.
	State(ctx context.Context, id string) (*workflow.State, uint64, error)
	Summary(id string) (workflow.Summary, bool)
	// WithFiles returns the IDs of runs with files on disk that resources with the name requested.
	WithFiles(namespace, name string) []string
	// Discard removes the files of a run that has ended.
	Discard(id string) error
}

type definer interface {
	Definition(ctx context.Context, namespace, name string, spec *v1alpha1.WorkflowRunSpec) (*workflow.Definition, []workflow.Problem, error)
}

// Reconciler reconciles WorkflowRuns with the log.
type Reconciler struct {
	// Base.Client reads WorkflowRuns that Cached has reduced; Base.Live reads whole ones.
	resource.Base
	Runs    domain
	Definer definer
	pace    resource.Pace
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return r.Setup(mgr, &v1alpha1.WorkflowRun{}, r, controller.Options{MaxConcurrentReconciles: reconcilers, ReconciliationTimeout: reconcileTimeout})
}

// Reconcile records the spec in the log and writes the view into the status.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var w v1alpha1.WorkflowRun
	err := r.Client.Get(ctx, req.NamespacedName, &w)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	id, adopted, refusal := w.LogID()
	summary, known := r.Runs.Summary(id)
	if err := r.orphans(ctx, req, &w, id); err != nil || w.UID == "" {
		return ctrl.Result{}, err
	}
	if !w.DeletionTimestamp.IsZero() {
		return r.release(ctx, &w, id, summary, known)
	}
	if !known {
		if over, err := r.publishEnded(ctx, &w, id); over || err != nil {
			return ctrl.Result{}, err
		}
		if !adopted && w.Status.RunID != "" && w.Status.FinishedAt == nil { // only the status shows that it started
			return ctrl.Result{}, r.publishLost(ctx, &w)
		}
	}
	if wrong := w.Unreadable.Spec; wrong != nil && !known {
		return ctrl.Result{}, r.write(ctx, &w, v1alpha1.WorkflowRunStatus{Message: wrong.String(), Next: resource.Remedy}, supervise.Throttled{})
	}
	if set, err := resource.AddFinalizer(ctx, r.Client, &w, finalizer); set || err != nil {
		// The watch requeues the WorkflowRun at once. No run starts before the finalizer is set.
		return ctrl.Result{}, err
	}
	switch {
	case refusal != nil:
		return ctrl.Result{}, r.publishProblems(ctx, &w, refusal.Error())
	case known:
		if err := r.suspend(ctx, &w, id, summary); err != nil {
			return ctrl.Result{}, err
		}
		return r.publish(ctx, &w, id, summary)
	case adopted:
		return ctrl.Result{}, r.publishWaiting(ctx, &w, "waiting until the log contains run "+id,
			"restore the log that contains the run, or delete the WorkflowRun")
	}
	if why := r.Quota.Throttled(w.Namespace); why != (supervise.Throttled{}) && w.Status.FinishedAt == nil {
		return ctrl.Result{RequeueAfter: supervise.RecheckInterval}, r.write(ctx, &w, v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunPending}, why)
	}
	return ctrl.Result{}, r.begin(ctx, &w, id)
}

// orphans aborts the runs in the log whose WorkflowRun was deleted or replaced by another of the
// same name. If no resource has the name, it also removes the files of ended runs.
func (r *Reconciler) orphans(ctx context.Context, req ctrl.Request, w *v1alpha1.WorkflowRun, own string) error {
	name := resource.Orphans{Kind: "WorkflowRun", Key: req.NamespacedName, UID: w.UID, Open: r.Runs.Open(req.Namespace, req.Name), Own: own}
	err := name.End(ctx, r.Live, func(ctx context.Context, id, actor, reason string) error {
		return r.Runs.Command(ctx, id, actor, workflow.AbortRun{Reason: reason})
	})
	if err != nil || w.UID != "" {
		return err
	}
	name.Open = r.Runs.WithFiles(req.Namespace, req.Name)
	return name.End(ctx, r.Live, func(ctx context.Context, id, _, _ string) error {
		s, _, err := r.Runs.State(ctx, id)
		switch {
		case err != nil: // for example an event of a later version; a WorkflowRun of the same name must not wait for this run
			ctrl.LoggerFrom(ctx).Error(err, "reading a run with leftover files from the log", "run", id)
		case !s.IsDefined() || workflow.Summarize(s).Settled:
			r.discard(ctx, id)
		}
		return nil
	})
}

// discard only logs an error, because remaining files do no harm.
func (r *Reconciler) discard(ctx context.Context, id string) {
	if err := r.Runs.Discard(id); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "removing the files of a run", "run", id)
	}
}

// publishEnded writes the status of an ended run that the view lacks because it was removed or the
// log was replaced. See resource.LatestStatus.
func (r *Reconciler) publishEnded(ctx context.Context, w *v1alpha1.WorkflowRun, id string) (bool, error) {
	s := &w.Status
	if s.FinishedAt != nil && s.RunID == "" && s.ObservedGeneration == w.Generation { // the manifest was rejected
		return false, nil
	}
	status, ended, err := resource.LatestStatus(ctx, r.Runs, id, s, s.FinishedAt != nil && s.RunID == id)
	if err != nil || !ended {
		return false, err
	}
	return true, r.write(ctx, w, status, supervise.Throttled{})
}

// begin requests the run that the manifest defines. It rejects a manifest with all its errors, and
// then records nothing in the log.
func (r *Reconciler) begin(ctx context.Context, w *v1alpha1.WorkflowRun, id string) error {
	s := &w.Status
	if s.FinishedAt != nil && (s.RunID != "" || s.ObservedGeneration == w.Generation) {
		return nil // rejected, or ended in another log: keep the status
	}
	var whole v1alpha1.WorkflowRun
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(w), &whole); err != nil {
		return client.IgnoreNotFound(err)
	}
	if whole.UID != w.UID || whole.Generation != w.Generation {
		return nil // the watch requeues it
	}
	definition, problems, err := r.Definer.Definition(ctx, w.Namespace, w.Name, &whole.Spec)
	if err != nil {
		waiting := r.publishWaiting(ctx, w, "preparing the run: "+resource.TruncateNote(err.Error()),
			"grant the ServiceAccount of the WorkflowRun read access to the objects that its tasks refer to")
		return errors.Join(fmt.Errorf("preparing the run: %w", err), waiting)
	}
	if definition == nil {
		return r.publishProblems(ctx, w, list(problems))
	}
	if w.Spec.Suspend {
		return r.publishWaiting(ctx, w, "suspended before it started", "set spec.suspend to false")
	}
	err = r.Runs.Request(ctx, id, actor(w), definition)
	if err != nil && !errors.Is(err, runner.ErrDifferentDefinition) { // then the log has the run, and the view soon will
		return resource.RequestError(err, func(message, next string) error { return r.publishWaiting(ctx, w, message, next) })
	}
	r.warn(w, problems)
	return nil // the view requeues the WorkflowRun when it contains the run
}

const suspended = "spec.suspend is set"

// suspend pauses and resumes the run as spec.suspend requests. It does not resume a run that an
// operator has paused.
func (r *Reconciler) suspend(ctx context.Context, w *v1alpha1.WorkflowRun, id string, g workflow.Summary) error {
	var in workflow.Input
	switch {
	case w.Unreadable.Spec != nil: // the spec is unknown
		return nil
	case w.Spec.Suspend && !g.Paused && !g.Stopping && g.Phase != v1alpha1.RunStranded:
		in = workflow.PauseRun{Reason: suspended}
	case !w.Spec.Suspend && g.Paused && g.PausedReason == suspended && !g.Stopping:
		in = workflow.ResumeRun{Reason: "spec.suspend is no longer set"}
	default:
		return nil
	}
	if err := r.Runs.Command(ctx, id, actor(w), in); err != nil {
		return fmt.Errorf("recording the change of spec.suspend: %w", err)
	}
	return nil
}

// release removes the finalizer of a deleted WorkflowRun when its run has ended. It aborts a run in
// progress: the run releases what it holds and keeps what it created.
func (r *Reconciler) release(ctx context.Context, w *v1alpha1.WorkflowRun, id string, g workflow.Summary, known bool) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(w, finalizer) {
		return ctrl.Result{}, nil
	}
	if !known { // the view may not contain a recent request yet
		s, _, err := r.Runs.State(ctx, id)
		switch {
		case err != nil:
			return ctrl.Result{}, fmt.Errorf("reading run %s from the log: %w", id, err)
		default:
			g, known = workflow.Summarize(s), s.IsDefined()
		}
	}
	// A run that its WorkflowRun does not adopt is not driven, so it starts no more tasks and never ends.
	if known && !g.Settled && r.Runs.Throttled(id).Reason != supervise.NotAdopted {
		if !g.Stopping {
			if err := r.Runs.Command(ctx, id, actor(w), workflow.AbortRun{Reason: "the WorkflowRun was deleted"}); err != nil {
				return ctrl.Result{}, fmt.Errorf("recording the abort: %w", err)
			}
		}
		return r.publish(ctx, w, id, g)
	}
	r.discard(ctx, id)
	r.pace.Forget(client.ObjectKeyFromObject(w))
	return ctrl.Result{}, resource.RemoveFinalizer(ctx, r.Client, w, finalizer)
}

func actor(w *v1alpha1.WorkflowRun) string { return resource.Actor(client.ObjectKeyFromObject(w)) }

// publishBytes is the largest spec whose status is updated every resource.PublishInterval. For
// larger ones the interval grows with the size, because each update stores the whole object in etcd
// and sends it to every watch.
const publishBytes = 64 << 10

func publishIntervalFor(w *v1alpha1.WorkflowRun) time.Duration {
	size, _ := strconv.Atoi(w.Annotations[specBytes]) // 0 without the annotation
	return max(resource.PublishInterval, resource.PublishInterval*time.Duration(size)/publishBytes)
}

func (r *Reconciler) publish(ctx context.Context, w *v1alpha1.WorkflowRun, id string, g workflow.Summary) (ctrl.Result, error) {
	if wait := r.pace.Delay(client.ObjectKeyFromObject(w), string(g.Phase), publishIntervalFor(w)); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	status, ok := r.Runs.Status(id)
	if !ok {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.write(ctx, w, status, r.Runs.Throttled(id))
}

// publishProblems rejects a manifest. It records nothing in the log.
func (r *Reconciler) publishProblems(ctx context.Context, w *v1alpha1.WorkflowRun, message string) error {
	status := v1alpha1.WorkflowRunStatus{
		Phase: v1alpha1.RunFailed, FinishedAt: w.Status.FinishedAt,
		Message: "rejected, and nothing was started: " + resource.TruncateMessage(message), Next: "correct the manifest, and create another WorkflowRun",
	}
	if status.FinishedAt == nil {
		now := metav1.Now().Rfc3339Copy()
		status.FinishedAt = &now
	}
	return r.write(ctx, w, status, supervise.Throttled{})
}

// publishLost reports that the log lacks a run that has started. The run is not started again,
// because its tasks have already had effects.
func (r *Reconciler) publishLost(ctx context.Context, w *v1alpha1.WorkflowRun) error {
	status := *w.Status.DeepCopy()
	status.Phase = v1alpha1.RunStranded
	status.Message = "stranded: run " + status.RunID +
		" has started, but the event log does not contain it: an older copy of the log was restored, or the log was replaced"
	status.Next = "restore the log; or compare the effects of its tasks with the manifest, delete this WorkflowRun, and create another"
	return r.write(ctx, w, status, supervise.Throttled{})
}

func (r *Reconciler) publishWaiting(ctx context.Context, w *v1alpha1.WorkflowRun, message, next string) error {
	return r.write(ctx, w, v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunPending, Message: message, Next: next}, supervise.Throttled{})
}

func (r *Reconciler) write(ctx context.Context, w *v1alpha1.WorkflowRun, status v1alpha1.WorkflowRunStatus, why supervise.Throttled) error {
	before := w.DeepCopy()
	status.ObservedGeneration = w.Generation
	status.Message = cmp.Or(why.Message, status.Message)
	if status.Conditions = resource.WithThrottled(kstatus(w.Status.Conditions, status, w.Generation), why, w.Generation); status.RunID == "" && w.Unreadable.Spec != nil {
		status.Conditions = resource.Ignored(w.Status.Conditions, w.Generation, w.Unreadable.Spec)
	}
	w.Status = status
	if written, err := resource.Publish(ctx, r.Client, r.Recorder, before, w, &w.Status.Conditions); !written {
		return err
	}
	for _, n := range newEvents(w, &before.Status) {
		r.Recorder.Eventf(w, nil, n.kind, n.reason, "Run", "%s", resource.TruncateNote(n.note))
	}
	return nil
}

func list(problems []workflow.Problem) string {
	var errors, warnings []string
	for _, p := range problems {
		if p.Warning {
			warnings = append(warnings, "warning: "+p.String())
		} else {
			errors = append(errors, p.String())
		}
	}
	return strings.Join(append(errors, warnings...), "; ")
}

// kstatus sets Reconciling while the run continues by itself, Ready if it ended as requested, and
// Stalled otherwise. A run whose failures are ignored by policy ended as requested.
func kstatus(old []metav1.Condition, s v1alpha1.WorkflowRunStatus, generation int64) []metav1.Condition {
	ready, going := false, false
	switch s.Phase {
	case v1alpha1.RunSucceeded, v1alpha1.RunDegraded:
		ready = true
	case v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack:
		going = true
	}
	return resource.Kstatus(old, generation, string(s.Phase),
		resource.Value{True: ready, Message: s.Message},
		resource.Value{True: going, Message: s.Message},
		resource.Value{True: !ready && !going, Message: cmp.Or(s.Next, s.Message)})
}
