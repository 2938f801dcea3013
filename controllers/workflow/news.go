package workflow

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
	"scute.dev/workflow"
)

type eventItem struct{ kind, reason, note string }

// maxTaskEvents bounds the events for one status. The log contains all of them.
const maxTaskEvents = 10

// newEvents returns the events for the changes since the previous status: another phase of the run,
// and tasks that failed finally or wait for an operator. It compares published statuses, so a
// restarted daemon records no event twice.
func newEvents(w *v1alpha1.WorkflowRun, before *v1alpha1.WorkflowRunStatus) []eventItem {
	after := &w.Status
	var items []eventItem
	was := make(map[string]v1alpha1.TaskPhase, len(before.Tasks))
	for i := range before.Tasks {
		was[before.Tasks[i].Name] = before.Tasks[i].Phase
	}
	left := 0
	for i := range after.Tasks {
		t := &after.Tasks[i]
		if !isNotable(t.Phase) || was[t.Name] == t.Phase {
			continue
		}
		if len(items) == maxTaskEvents {
			left++
			continue
		}
		items = append(items, eventItem{corev1.EventTypeWarning, "Task" + string(t.Phase), fmt.Sprintf("task %s: %s", t.Name, t.Message)})
	}
	if left > 0 {
		items = append(items, eventItem{
			corev1.EventTypeWarning, "TasksFailed",
			fmt.Sprintf("%d more tasks failed or wait: run `scutectl describe run %s -n %s`", left, w.Name, w.Namespace),
		})
	}
	if before.Phase != after.Phase {
		kind := corev1.EventTypeNormal
		if isTroubled(after.Phase) {
			kind = corev1.EventTypeWarning
		}
		items = append(items, eventItem{kind, string(after.Phase), after.Message})
	}
	return items
}

func isNotable(p v1alpha1.TaskPhase) bool {
	switch p {
	case v1alpha1.TaskFailed, v1alpha1.TaskIgnored, v1alpha1.TaskPaused, v1alpha1.TaskUndoFailed:
		return true
	default:
		return false
	}
}

func isTroubled(p v1alpha1.RunPhase) bool {
	switch p {
	case "", v1alpha1.RunPending, v1alpha1.RunRunning, v1alpha1.RunSucceeded:
		return false
	default:
		return true
	}
}

func (r *Reconciler) warn(w *v1alpha1.WorkflowRun, problems []workflow.Problem) {
	for i, p := range problems {
		if i == maxTaskEvents {
			r.Recorder.Eventf(w, nil, corev1.EventTypeWarning, "Doubtful", "Run", "%d more warnings", len(problems)-maxTaskEvents)
			return
		}
		r.Recorder.Eventf(w, nil, corev1.EventTypeWarning, "Doubtful", "Run", "%s", resource.TruncateNote(p.String()))
	}
}
