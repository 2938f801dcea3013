package workflow

import (
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

// Describe renders an event in words. It omits inputs, outputs and undo data.
func Describe(e Event) view.Line {
	switch e := e.(type) {
	case Defined:
		return view.Line{Detail: fmt.Sprintf("part %d of %d: %s", e.Part+1, e.Of, view.Count(len(e.Tasks), "task"))}
	case Started:
		return view.Line{Name: "run requested", Detail: fmt.Sprintf("policy %s, definition %s", e.Policy, view.Hash(e.Hash))}
	case Claimed:
		return view.Line{Detail: "by " + e.Holder}
	case Stranded:
		return view.Line{Detail: e.Reason}
	case Paused:
		return view.Line{Name: "run paused", Detail: e.Reason}
	case Resumed:
		return view.Line{Name: "run resumed", Detail: view.Join(e.Reason, repeating("", e.Rerun))}
	case Verified:
		return view.Line{Detail: view.Join(gone(e.Gone), repeating("their holds ", e.Rerun))}
	case Aborted:
		return view.Line{Detail: because(e.Task, e.Message)}
	case RollbackStarted:
		return view.Line{Detail: because(e.Task, e.Message)}
	case Ended:
		return view.Line{Detail: view.Join(string(e.Phase), e.Message)}
	case Migrated:
		return view.Line{Detail: fmt.Sprintf("to definition %s, %s planned", view.Hash(e.Hash), view.Count(len(e.Plan), "task"))}
	case HandlerStarted:
		return view.Line{About: e.Task, Detail: e.Handler}
	case HandlerEnded:
		if e.Error != "" {
			return view.Line{Name: "handler failed", About: e.Task, Detail: e.Handler + ": " + e.Error}
		}
		return view.Line{Name: "handler done", About: e.Task, Detail: e.Handler}
	default:
		return runTask(e)
	}
}

func runTask(e Event) view.Line {
	switch e := e.(type) {
	case TaskStarted:
		return view.Line{Name: "started", About: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d", e.Attempt)}
	case UndoRecorded:
		if e.Adopted {
			return view.Line{Name: "undo recorded", About: step(e.Task, e.Step), Detail: "it already existed"}
		}
		return view.Line{Name: "undo recorded", About: step(e.Task, e.Step)}
	case Progressed:
		return view.Line{Name: "waiting", About: step(e.Task, e.Step), Detail: e.Message}
	case AttemptFailed:
		return view.Line{About: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d (%s): %s; retrying at %s", e.Attempt, e.Cause, e.Message,
			view.Exact(e.RetryAt))}
	case StepSucceeded:
		return view.Line{About: step(e.Task, e.Step)}
	case TaskSucceeded:
		return view.Line{Name: "succeeded", About: e.Task}
	case TaskFailed:
		return view.Line{Name: "failed", About: step(e.Task, e.Step), Detail: e.Message + "; " + consequence(e)}
	case TaskPaused:
		return view.Line{About: step(e.Task, e.Step), Detail: fmt.Sprintf("(%s) %s", e.Reason, e.Message)}
	case TaskSkipped:
		return view.Line{Name: "skipped", About: e.Task, Detail: e.Reason}
	case TaskInterrupted:
		return view.Line{Name: "interrupted", About: step(e.Task, e.Step), Detail: e.Message}
	case EdgeExpired:
		return view.Line{About: e.Task, Detail: "timed out waiting for " + e.Need}
	case TaskReleased:
		return view.Line{About: e.Task, Detail: e.Reason}
	case Decided:
		return view.Line{About: e.Task, Detail: view.Join(string(e.Action)+patched(e)+question(e), e.Reason)}
	case UndoStarted:
		if e.Release {
			return view.Line{Name: "releasing hold", About: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d", e.Attempt)}
		}
		return view.Line{Name: "undo started", About: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d", e.Attempt)}
	case UndoAttemptFailed:
		return view.Line{About: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d: %s; retrying at %s", e.Attempt, e.Message, view.Exact(e.RetryAt))}
	case Undone:
		if e.Release {
			return view.Line{Name: "hold released", About: step(e.Task, e.Step), Detail: e.NothingReason}
		}
		return view.Line{Name: "undone", About: step(e.Task, e.Step), Detail: e.NothingReason}
	case UndoFailed:
		return view.Line{About: step(e.Task, e.Step), Detail: e.Message}
	default:
		return view.Line{}
	}
}

func consequence(e TaskFailed) string {
	switch {
	case e.Verdict == v1alpha1.VerdictIgnored:
		return fmt.Sprintf("the failure is ignored (failure policy %s)", e.Policy)
	case e.SkipsChildren:
		return fmt.Sprintf("the tasks that need it are skipped (failure policy %s)", e.Policy)
	case e.Verdict == v1alpha1.VerdictHandled:
		return "a branch of the graph handles the failure"
	default:
		return fmt.Sprintf("the run stops (failure policy %s)", e.Policy)
	}
}

func step(task, step string) string {
	if step == "" {
		return task
	}
	return task + " (" + step + ")"
}

func because(task, message string) string {
	if task == "" {
		return message
	}
	return task + ": " + message
}

func repeating(what string, tasks []string) string {
	if len(tasks) == 0 {
		return ""
	}
	return "repeating " + what + view.First(tasks)
}

func gone(list []Gone) string {
	if len(list) == 0 {
		return "finished tasks were checked: nothing has changed"
	}
	names := make([]string, len(list))
	for i, g := range list {
		names[i] = g.Task + " (" + g.Reason + ")"
	}
	return repeating("", names)
}

// question returns the attempt for decisions of earlier versions, which do not name a question.
func question(e Decided) string {
	switch {
	case e.Question > 0:
		return fmt.Sprintf(" (answers question %d)", e.Question)
	case e.Attempt > 0:
		return fmt.Sprintf(" (after attempt %d)", e.Attempt)
	default:
		return ""
	}
}

func patched(e Decided) string {
	switch {
	case e.With != nil:
		return " with other inputs"
	case e.Output != nil:
		return " with an output"
	default:
		return ""
	}
}
