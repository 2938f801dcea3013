package fact

import (
	"fmt"
	"strings"

	"scute.dev/cmd/ctl/term"
	"scute.dev/internal/plural"
	"scute.dev/workflow"
)

// run describes an event of a run. It never shows inputs, outputs or the data of an undo.
func run(e workflow.Event) Fact {
	switch e := e.(type) {
	case workflow.Defined:
		return Fact{Detail: fmt.Sprintf("part %d of %d: %s", e.Part+1, e.Of, plural.Of(len(e.Tasks), "task"))}
	case workflow.Started:
		return Fact{What: "run requested", Detail: fmt.Sprintf("policy %s, definition %s", e.Policy, short(e.Hash))}
	case workflow.Claimed:
		return Fact{Detail: "by " + e.Holder}
	case workflow.Stranded:
		return Fact{Detail: e.Reason}
	case workflow.Paused:
		return Fact{What: "run paused", Detail: e.Reason}
	case workflow.Resumed:
		return Fact{What: "run resumed", Detail: join(e.Reason, again(e.Rerun))}
	case workflow.Verified:
		return Fact{Detail: join(gone(e.Gone), needed(e.Rerun))}
	case workflow.Aborted:
		return Fact{Detail: because(e.Task, e.Message)}
	case workflow.RollbackStarted:
		return Fact{Detail: because(e.Task, e.Message)}
	case workflow.Ended:
		return Fact{Detail: join(string(e.Phase), e.Message)}
	case workflow.Migrated:
		return Fact{Detail: fmt.Sprintf("to definition %s, %s planned", short(e.Hash), plural.Of(len(e.Plan), "task"))}
	case workflow.HandlerStarted:
		return Fact{Task: e.Task, Detail: e.Handler}
	case workflow.HandlerEnded:
		if e.Error != "" {
			return Fact{What: "handler failed", Task: e.Task, Detail: e.Handler + ": " + e.Error}
		}
		return Fact{What: "handler done", Task: e.Task, Detail: e.Handler}
	default:
		return runTask(e)
	}
}

// runTask describes an event of a task.
func runTask(e workflow.Event) Fact {
	switch e := e.(type) {
	case workflow.TaskStarted:
		return Fact{What: "started", Task: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d", e.Attempt)}
	case workflow.UndoRecorded:
		if e.Adopted {
			return Fact{What: "undo recorded", Task: step(e.Task, e.Step), Detail: "it was found already there"}
		}
		return Fact{What: "undo recorded", Task: step(e.Task, e.Step)}
	case workflow.Progressed:
		return Fact{What: "waiting", Task: step(e.Task, e.Step), Detail: e.Message}
	case workflow.AttemptFailed:
		return Fact{Task: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d (%s): %s; again at %s", e.Attempt, e.Cause, e.Message, term.Exact(e.RetryAt))}
	case workflow.StepSucceeded:
		return Fact{Task: step(e.Task, e.Step)}
	case workflow.TaskSucceeded:
		return Fact{What: "succeeded", Task: e.Task}
	case workflow.TaskFailed:
		return Fact{What: "failed", Task: step(e.Task, e.Step), Detail: fmt.Sprintf("%s; %s by policy %s", e.Message, e.Verdict, e.Policy)}
	case workflow.TaskPaused:
		return Fact{Task: step(e.Task, e.Step), Detail: fmt.Sprintf("(%s) %s", e.Why, e.Message)}
	case workflow.TaskSkipped:
		return Fact{What: "skipped", Task: e.Task, Detail: e.Reason}
	case workflow.TaskInterrupted:
		return Fact{What: "interrupted", Task: step(e.Task, e.Step), Detail: e.Message}
	case workflow.EdgeExpired:
		return Fact{Task: e.Task, Detail: "it waited too long for " + e.Need}
	case workflow.TaskReleased:
		return Fact{Task: e.Task, Detail: e.Reason}
	case workflow.Decided:
		return Fact{Task: e.Task, Detail: join(string(e.Action)+patched(e)+about(e), e.Reason)}
	case workflow.UndoStarted:
		if e.Release {
			return Fact{What: "giving back", Task: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d", e.Attempt)}
		}
		return Fact{What: "undo started", Task: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d", e.Attempt)}
	case workflow.UndoAttemptFailed:
		return Fact{Task: step(e.Task, e.Step), Detail: fmt.Sprintf("attempt %d: %s; again at %s", e.Attempt, e.Message, term.Exact(e.RetryAt))}
	case workflow.Undone:
		if e.Release {
			return Fact{What: "given back", Task: step(e.Task, e.Step), Detail: e.Nothing}
		}
		return Fact{What: "undone", Task: step(e.Task, e.Step), Detail: e.Nothing}
	case workflow.UndoFailed:
		return Fact{Task: step(e.Task, e.Step), Detail: e.Message}
	default:
		return Fact{}
	}
}

// step returns the name of a task, with the name of the hook for a step of a hook.
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

func again(tasks []string) string {
	if len(tasks) == 0 {
		return ""
	}
	return "again: " + few(tasks)
}

// needed returns the tasks that must run again only because the tasks in Gone need their holds.
func needed(tasks []string) string {
	if len(tasks) == 0 {
		return ""
	}
	return "for that: " + few(tasks)
}

func gone(list []workflow.Gone) string {
	if len(list) == 0 {
		return "what was done is still in place"
	}
	names := make([]string, len(list))
	for i, g := range list {
		names[i] = g.Task + " (" + g.Why + ")"
	}
	return "again: " + few(names)
}

func few(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// about returns the question that a decision answers. For a decision of an earlier version it returns the attempt.
func about(e workflow.Decided) string {
	switch {
	case e.Question > 0:
		return fmt.Sprintf(" to question %d", e.Question)
	case e.Attempt > 0:
		return fmt.Sprintf(" after attempt %d", e.Attempt)
	default:
		return ""
	}
}

func patched(e workflow.Decided) string {
	switch {
	case e.With != nil:
		return " with other inputs"
	case e.Output != nil:
		return " with an output"
	default:
		return ""
	}
}
