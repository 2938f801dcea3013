package doctor

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/trust"
	"scute.dev/kube/object"
)

// waitingRuns reports runs that no daemon has started, and runs that wait for an operator.
func waitingRuns(ctx context.Context, v *diagnosis) bool {
	const subject = "workflows"
	list := &v1alpha1.WorkflowRunList{}
	if _, err := v.list(ctx, list); err != nil {
		v.report(warning(subject, "ask for permission to list WorkflowRuns", "%v", v.cluster.Explain(err)))
		return true
	}
	v.workflows = list.Items
	busy := 0
	reportEach(v, list.Items, func(w *v1alpha1.WorkflowRun) *Result {
		if w.Status.FinishedAt != nil {
			return nil
		}
		busy++
		name, look := w.Namespace+"/"+w.Name, v.kit.Hint(w.Namespace, "describe", "run", w.Name)
		if untrusted := trust.FaultIn(w.Status.Conditions); untrusted != nil {
			return new(problem(subject, reconcileRemedy(v, untrusted), "%s is stalled in %s: %s", name, w.Status.Phase, untrusted.Message))
		}
		switch w.Status.Phase {
		case v1alpha1.RunPaused, v1alpha1.RunPartiallyPaused, v1alpha1.RunAborted, v1alpha1.RunRollbackFailed, v1alpha1.RunStranded:
			return new(warning(subject, look, "%s is %s: %s", name, w.Status.Phase, w.Status.Message))
		case "", v1alpha1.RunPending:
			return v.unheard(subject, w)
		default:
			return nil
		}
	}, func() Result {
		return ok(subject, "%d in progress, %d in total; none waits for an operator", busy, len(list.Items))
	})
	return true
}

// pausedByRun reports whether a cluster is held by a run, and whether that run is not in progress.
func pausedByRun(v *diagnosis, subject, name string, u *unstructured.Unstructured) (held, orphan bool) {
	holder := u.GetAnnotations()[object.PauseAnnotation]
	if holder == "" {
		return false, false
	}
	for i := range v.workflows {
		s := &v.workflows[i].Status
		if rest, of := strings.CutPrefix(holder, s.RunID); of && s.FinishedAt == nil && s.RunID != "" && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ".")) {
			return true, false
		}
	}
	v.report(problem(subject, "if that run is local, resume it there; otherwise, if its log shows that it has ended, remove annotation "+
		object.PauseAnnotation+" and unpause the cluster", "%s is paused by task %s, whose run is not in progress here", name, holder))
	return true, true
}
