package workflow

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/internal/supervise"
	"scute.dev/workflow"
)

// publishBytes is the largest WorkflowRun whose status is updated every resource.PublishInterval. For larger ones the interval grows with their size,
// because each update of the status stores the whole object in etcd and sends it to every watch.
const publishBytes = 64 << 10

// publishIntervalFor returns the interval between updates of the status of a cached WorkflowRun, by the approximate size of its spec.
func publishIntervalFor(w *v1alpha1.WorkflowRun) time.Duration {
	size, _ := strconv.Atoi(w.Annotations[specBytes]) // 0 without the annotation
	return max(resource.PublishInterval, resource.PublishInterval*time.Duration(size)/publishBytes)
}

// publish writes the log's view of a run into the status, at a bounded rate.
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

// publishProblems writes the errors of a manifest into the status. It records nothing in the log.
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

// publishLost writes into the status that the log does not contain a run that has started. The run is not started again, because the effects of its tasks
// exist.
func (r *Reconciler) publishLost(ctx context.Context, w *v1alpha1.WorkflowRun) error {
	status := *w.Status.DeepCopy()
	status.Phase = v1alpha1.RunStranded
	status.Message = "stranded: run " + status.RunID +
		" has started, but the event log does not contain it: an older copy of the log was restored, or the log was replaced"
	status.Next = "restore the log; or compare the effects of its tasks with the manifest, delete this WorkflowRun, and create another"
	return r.write(ctx, w, status, supervise.Throttled{})
}

// publishWaiting writes into the status why a run has not started.
func (r *Reconciler) publishWaiting(ctx context.Context, w *v1alpha1.WorkflowRun, message, next string) error {
	return r.write(ctx, w, v1alpha1.WorkflowRunStatus{Phase: v1alpha1.RunPending, Message: message, Next: next}, supervise.Throttled{})
}

// write patches the status if it has changed, and records events for the changes.
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

// list returns all problems, one per line, the warnings last.
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

// kstatus returns the kstatus conditions of a status: Reconciling while the run continues automatically, Stalled if it needs a person or did not end
// as requested, Ready if it did. A run whose failures are ignored by policy ended as requested.
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
