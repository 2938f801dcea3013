package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

// Limits of a status. They keep the resource far below the size that the API server permits.
const (
	maxStatusTasks   = 100
	maxStatusOutput  = 1 << 10
	maxStatusMessage = 500
)

// Status returns the status of the run, with at most maxStatusTasks of its tasks.
func Status(s *State) v1alpha1.WorkflowRunStatus {
	out := v1alpha1.WorkflowRunStatus{
		Phase: CurrentPhase(s), StartedAt: v1alpha1.StatusTime(s.startedAt), Deadline: v1alpha1.StatusTime(s.deadline), Counts: s.counts(),
	}
	if s.Finished() {
		out.FinishedAt = v1alpha1.StatusTime(s.endedAt)
	}
	out.Message, out.Next = Explain(s)
	out.Message, out.Next = view.Truncate(out.Message, maxStatusMessage), view.Truncate(out.Next, maxStatusMessage)
	out.Progress = fmt.Sprintf("%d/%d", out.Counts.Succeeded, out.Counts.Tasks)
	for _, i := range s.importantTasks(maxStatusTasks) {
		t := s.TaskStatus(i)
		t.Message = view.Truncate(t.Message, maxStatusMessage)
		if t.Output != nil && (len(t.Output.Raw) > maxStatusOutput || !isReadable(t.Output.Raw)) {
			t.Output = nil
		}
		out.Tasks = append(out.Tasks, t)
	}
	out.TasksOmitted = len(s.def) - len(out.Tasks)
	return out
}

// isReadable reports whether an API server accepts a value: 1e400 is valid JSON, but rejected.
func isReadable(output json.RawMessage) bool {
	var v any
	return json.Unmarshal(output, &v) == nil
}

// TaskStatus returns the status of a task, with its whole output.
func (s *State) TaskStatus(i int) v1alpha1.TaskStatus {
	t := &s.tasks[i]
	out := v1alpha1.TaskStatus{
		Name: s.def[i].Name, Kind: s.def[i].Kind(), Phase: s.taskPhase(i), Verdict: t.verdict, Attempts: t.attempts,
		StartedAt: v1alpha1.StatusTime(t.startedAt), FinishedAt: v1alpha1.StatusTime(t.endedAt), Message: t.message,
	}
	if !s.Finished() && (t.undo == undoFailed || t.awaitsDecision() && !s.isRollingBack()) {
		out.Question = t.questions
	}
	if raw := s.Output(s.def[i].Name); raw != nil {
		out.Output = &apiextensionsv1.JSON{Raw: raw}
		if out.Phase == taskSucceeded {
			out.Message = cmp.Or(out.Message, skippedText(raw))
		}
	}
	return out
}

func skippedText(output json.RawMessage) string {
	var said struct {
		Skipped string `json:"skipped"`
	}
	if json.Unmarshal(output, &said) != nil || said.Skipped == "" {
		return ""
	}
	return "skipped: " + said.Skipped
}

// taskPhase returns the phase of a task for the status. If an undo of the task has begun, the phase
// of the undo takes precedence.
func (s *State) taskPhase(i int) taskPhase {
	if p := undoPhase(&s.tasks[i]); p != "" {
		return p
	}
	return s.tasks[i].phase
}

func (s *State) counts() v1alpha1.TaskCounts {
	return v1alpha1.TaskCounts{
		Tasks: len(s.def), Succeeded: s.phaseCounts[taskSucceeded], Ignored: s.phaseCounts[taskIgnored], Skipped: s.phaseCounts[taskSkipped],
		Failed: s.phaseCounts[taskFailed] + s.undoCounts[undoFailed], Paused: s.phaseCounts[taskPaused], Running: s.phaseCounts[taskRunning] + s.phaseCounts[taskRetrying],
		Undone: s.undoCounts[undoDone],
	}
}

// importantTasks returns at most limit tasks, in manifest order: first choice are tasks that need
// attention, then tasks in flight, then the tasks that ended last.
func (s *State) importantTasks(limit int) []int {
	all := make([]int, len(s.def))
	for i := range all {
		all[i] = i
	}
	if len(all) <= limit {
		return all
	}
	rank := func(i int) int {
		switch s.taskPhase(i) {
		case taskFailed, taskPaused, v1alpha1.TaskUndoFailed:
			return 0
		case taskRunning, taskRetrying, v1alpha1.TaskUndoing, taskInterrupted:
			return 1
		case taskPending:
			return 3
		default:
			return 2
		}
	}
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), s.tasks[b].endedAt.Compare(s.tasks[a].endedAt))
	})
	all = all[:limit]
	slices.Sort(all)
	return all
}

// Explain returns two sentences. message describes what is happening or how the run ended. next
// describes what a user can do, or is "".
func Explain(s *State) (message, next string) {
	switch CurrentPhase(s) {
	case v1alpha1.RunPending:
		return "waiting for a process to start it", ""
	case v1alpha1.RunStranded:
		return "stranded: " + s.Stranded, "run a version of scute that supports it, or enable what it needs, then resume the run"
	case v1alpha1.RunRunning:
		if s.stopping != nil {
			return "stopping: " + s.stopReason(), ""
		}
		return s.progress(), ""
	case v1alpha1.RunPartiallyPaused:
		text, advice := s.question()
		return s.progress() + text, advice
	case v1alpha1.RunPaused:
		if s.paused {
			return "paused by an operator" + colon(s.pausedReason), "resume the run"
		}
		text, advice := s.question()
		return "waiting for an operator" + text, advice
	case v1alpha1.RunAborted:
		return s.ended.Message, "fix the cause, then resume the run: finished tasks are skipped"
	case v1alpha1.RunRollingBack:
		return fmt.Sprintf("rolling back, %s left: %s", view.Count(s.undoRemaining, "task"), s.stopReason()), ""
	case v1alpha1.RunRolledBack:
		return "rolled back: " + s.ended.Message, ""
	case v1alpha1.RunRollbackFailed:
		return s.undoFailureText(), "fix the cause, then decide: retry-undo, mark-undone or abandon"
	case v1alpha1.RunSucceeded:
		c := s.counts()
		return view.Count(c.Succeeded, "task") + " done" + unsuccessfulText(c), ""
	default:
		return s.ended.Message, ""
	}
}

func unsuccessfulText(c v1alpha1.TaskCounts) (text string) {
	for _, k := range []struct {
		n   int
		how string
	}{{c.Skipped, "skipped"}, {c.Ignored, "failed and ignored"}, {c.Failed, "failed and handled"}} {
		if k.n > 0 {
			text += fmt.Sprintf(", %d %s", k.n, k.how)
		}
	}
	return text
}

func (s *State) progress() string {
	c := s.counts()
	if c.Tasks == 0 {
		return "nothing to do"
	}
	message := fmt.Sprintf("%d of %d tasks done", c.Succeeded, c.Tasks) + unsuccessfulText(c)
	for i := range s.running.all() {
		message += ", running " + s.def[i].Name
		if m := s.tasks[i].message; m != "" {
			message += " (" + m + ")"
		}
		if more := s.running.n - 1; more > 0 {
			message += fmt.Sprintf(" and %d more", more)
		}
		break
	}
	if s.verify {
		message += ", checking finished tasks"
	}
	return message
}

func (s *State) undoFailureText() string {
	for i := range s.tasks {
		if t := &s.tasks[i]; t.undo == undoFailed {
			return fmt.Sprintf("%s could not be undone: %s", s.def[i].Name, t.message)
		}
	}
	return ""
}

// question returns a text about the first paused task, and advice on what an operator can do.
func (s *State) question() (text, advice string) {
	for i := range s.tasks {
		t, name := &s.tasks[i], s.def[i].Name
		if t.phase != taskPaused {
			continue
		}
		text = ": " + name + colon(t.message)
		if more := s.phaseCounts[taskPaused] - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		if t.pauseReason == ReasonHeld {
			return text, "release " + name + ": resume the run with --task " + name
		}
		actions := s.Actions(name)
		last := len(actions) - 1
		advice = "decide about " + name + ": " + strings.Join(actions[:last], ", ") + " or " + actions[last]
		if !t.expiresAt.IsZero() {
			advice += ", until " + t.expiresAt.UTC().Format(time.RFC3339)
		}
		return text, advice
	}
	return "", "resume the run"
}

// Actions returns the possible decisions about a task that waits for one. A task that an operator
// holds has none: it can only be released.
func (s *State) Actions(task string) []string {
	i, ok := s.index(task)
	if !ok || s.tasks[i].phase != taskPaused || s.tasks[i].pauseReason == ReasonHeld {
		return nil
	}
	return PossibleActions(s.tasks[i].pauseReason == ReasonApproval, s.passedPointOfNoReturn() == "")
}

// PossibleActions returns the possible decisions about a failed task, or about one that waits for
// an approval, most likely first. back means that the run can be rolled back.
func PossibleActions(approval, back bool) []string {
	actions := []string{string(ActRetry), string(ActIgnore), string(ActIgnoreChildren), string(ActSucceed)}
	if approval {
		actions = []string{string(ActSucceed), string(ActIgnoreChildren)}
	}
	if back {
		actions = append(actions, string(ActRollback))
	}
	return append(actions, string(ActAbort))
}

func colon(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// Summary contains the facts about a run that can be computed in constant time.
type Summary struct {
	Phase        v1alpha1.RunPhase
	Counts       v1alpha1.TaskCounts
	InFlight     int
	Paused       bool
	PausedReason string
	// Stopping is set if the run is being aborted or rolled back, or was aborted or rolled back
	// before.
	Stopping bool
	// Settled is set if nothing more will happen in this log and no hold is left.
	Settled bool
}

// Summarize returns the summary of a run.
func Summarize(s *State) Summary {
	return Summary{
		Phase: CurrentPhase(s), Counts: s.counts(), InFlight: s.inFlight(), Paused: s.paused, PausedReason: s.pausedReason,
		Stopping: s.stopping != nil || s.ended != nil,
		Settled:  s.ended != nil || s.Stranded != "" && s.stopping != nil && s.holding.n == 0,
	}
}

// IsStrandedFor reports whether this process cannot drive the run and need not retry until the run changes.
func IsStrandedFor(s *State, holder string) bool { return s.Stranded != "" && s.Holder == holder }
