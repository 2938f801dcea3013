package workflow

import (
	"fmt"
	"slices"

	"scute.dev/api/v1alpha1"
)

// oracle judges a run by the rules alone. It keeps only what the events say about each task, without counters or
// queues, and derives everything else from the whole graph each time. It shares only the names of phases and events
// with the engine.
type oracle struct {
	def   []Task
	at    map[string]int
	tasks []oracleTask

	stopped, rollback, ended bool
	handlers                 int // failures that are passed to the handlers
	onFailure, pending       int // handlers of the definition, and handlers that have not ended
}

type oracleTask struct {
	phase     taskPhase
	verdict   v1alpha1.Verdict
	rerunning bool         // it was final, and runs again
	expired   map[int]bool // edges
	// ignoredAt is the step whose failure was ignored. held reports whether the own step holds something, and lifted
	// whether the task has released a hold.
	ignoredAt      int
	held, released bool
	askedAt        int // the step that asked for an approval
	steps          []oracleStep
	undoing        *oracleStep // the latest
}

type oracleStep struct{ started, done, undone, adopted, releasing bool }

func newOracle(d *Definition) *oracle {
	o := &oracle{def: d.Tasks, at: make(map[string]int), onFailure: len(d.OnFailure)}
	for i := range d.Tasks {
		o.at[d.Tasks[i].Name] = i
		o.tasks = append(o.tasks, oracleTask{phase: taskPending, expired: make(map[int]bool), steps: make([]oracleStep, len(d.Tasks[i].Steps))})
	}
	return o
}

// isFinal reports whether a task has a final verdict, which decides its edges. A failure that ends
// the run is not final: the task runs again on resume.
func (o *oracle) isFinal(i int) bool {
	t := &o.tasks[i]
	switch t.phase {
	case taskSucceeded, taskIgnored, taskSkipped:
		return true
	case taskFailed:
		return t.verdict != v1alpha1.VerdictBlocking
	default:
		return false
	}
}

// edge returns "open", "met" or "lost".
func (o *oracle) edge(i, n int) string {
	need := o.def[i].Needs[n]
	p := o.at[need.Task]
	phase := o.tasks[p].phase
	switch {
	case o.tasks[i].expired[n]:
		return "lost"
	case !o.isFinal(p) || o.isBehind(p):
		return "open"
	case need.On == v1alpha1.OnCompletion,
		need.On == v1alpha1.OnFailure && phase == taskFailed,
		need.On == v1alpha1.OnSuccess && (phase == taskSucceeded || phase == taskIgnored):
		return "met"
	default:
		return "lost"
	}
}

// isBehind reports whether a task above, at any distance, runs again: tasks that have not started wait for it.
func (o *oracle) isBehind(i int) bool {
	for n, need := range o.def[i].Needs {
		if p := o.at[need.Task]; !o.tasks[i].expired[n] && (o.tasks[p].rerunning || o.isBehind(p)) {
			return true
		}
	}
	return false
}

// ready returns whether a task can start, and whether it never can. All required edges must be met, and at least one
// optional edge, if any, once all are decided (join: Any starts early). A task without any met optional edge is
// skipped.
func (o *oracle) ready(i int) (ready, unmeetable bool) {
	if o.tasks[i].phase != taskPending {
		return false, false
	}
	for j := range o.def {
		if o.def[j].Stage < o.def[i].Stage && !o.isFinal(j) {
			return false, false
		}
	}
	required, optional := map[string]int{}, map[string]int{}
	for n, need := range o.def[i].Needs {
		if need.Optional {
			optional[o.edge(i, n)]++
		} else {
			required[o.edge(i, n)]++
		}
	}
	some := len(optional) > 0
	if required["lost"] > 0 || some && optional["open"]+optional["met"] == 0 {
		return false, true
	}
	if required["open"] > 0 || some && (optional["met"] == 0 || optional["open"] > 0 && o.def[i].Join != v1alpha1.JoinAny) {
		return false, false
	}
	return true, false
}

func (o *oracle) step(task, step string) *oracleStep {
	i := o.at[task]
	for n := range o.def[i].Steps {
		if o.def[i].Steps[n].Name == step {
			return &o.tasks[i].steps[n]
		}
	}
	return nil
}

// reopen makes a task run again, and reconsiders tasks that were skipped because of it.
func (o *oracle) reopen(i int, whole bool) {
	o.tasks[i].rerunning = o.tasks[i].rerunning || o.isFinal(i)
	o.tasks[i].phase, o.tasks[i].verdict = taskPending, ""
	for n := range o.tasks[i].steps {
		if step := &o.tasks[i].steps[n]; whole || step.releasing && !o.rollback { // the progress of its release is unknown
			step.done, step.releasing = false, false
		}
	}
	for j := range o.def {
		for _, need := range o.def[j].Needs {
			if need.Task == o.def[i].Name && o.tasks[j].phase == taskSkipped {
				clear(o.tasks[j].expired) // their timeouts start again
				o.reopen(j, false)
			}
		}
	}
}

// verdict returns the result of a failure by the table of failure policies.
func (o *oracle) verdict(i int) (phase taskPhase, verdict v1alpha1.Verdict, run string) {
	d := &o.def[i]
	if d.PolicySource != "task" && d.PolicySource != "kind" {
		for j := range o.def {
			for n, need := range o.def[j].Needs {
				if need.Task == d.Name && need.On == v1alpha1.OnFailure && o.tasks[j].phase != taskSkipped && o.edge(j, n) == "open" {
					return taskFailed, v1alpha1.VerdictHandled, ""
				}
			}
		}
	}
	switch d.Policy {
	case v1alpha1.Ignore:
		return taskIgnored, v1alpha1.VerdictIgnored, ""
	case v1alpha1.IgnoreChildren:
		return taskFailed, v1alpha1.VerdictHandled, ""
	case v1alpha1.FailurePause:
		return taskPaused, "", ""
	case v1alpha1.Rollback:
		return taskFailed, v1alpha1.VerdictBlocking, "rollback"
	default:
		return taskFailed, v1alpha1.VerdictBlocking, "abort"
	}
}

// touched reports whether a rollback still has to undo something of a task.
func (o *oracle) touched(i int) bool {
	for _, step := range o.tasks[i].steps {
		if step.started && !step.undone {
			return true
		}
	}
	return false
}

// isAbove reports whether a task must be undone after another one, at any distance in the graph.
func (o *oracle) isAbove(i, below int) bool {
	if o.def[i].Stage != o.def[below].Stage {
		return o.def[i].Stage < o.def[below].Stage
	}
	for _, need := range o.def[below].Needs {
		if p := o.at[need.Task]; p == i || o.isAbove(i, p) {
			return true
		}
	}
	return false
}

// check checks an event against the rules, and records it.
func (o *oracle) check(e Event) (wrong string) {
	wrong = o.record(e)
	for i := range o.tasks {
		o.tasks[i].rerunning = o.tasks[i].rerunning && !o.isFinal(i)
	}
	return wrong
}

func (o *oracle) record(e Event) (wrong string) {
	i := o.at[e.task()]
	switch e := e.(type) {
	case TaskStarted:
		step := o.step(e.Task, e.Step)
		ready, _ := o.ready(i)
		switch {
		case o.stopped || o.ended:
			wrong = "started after the run was stopped"
		case !ready && o.tasks[i].phase != taskRetrying:
			wrong = fmt.Sprintf("started while %s and not ready", o.tasks[i].phase)
		case step.done && !step.undone && !step.releasing:
			wrong = "a done step was started again"
		}
		for n := range o.def[i].Steps {
			if s := &o.tasks[i].steps[n]; s == step {
				break
			} else if !s.done && o.tasks[i].phase != taskRetrying { // otherwise it runs again afterwards
				wrong = "a step was started before the one before it"
			}
		}
		if p := o.checkProtected(i); p != "" {
			wrong = p
		}
		o.resetReleases(i, e.Step)
		o.tasks[i].held = o.tasks[i].held || e.Step == "" && o.def[i].Steps[o.def[i].OwnStep()].Holds
		step.started, step.done, step.undone, step.releasing = true, false, false, false
		o.tasks[i].phase = taskRunning
	case UndoRecorded:
		o.step(e.Task, e.Step).adopted = e.Adopted
	case AttemptFailed:
		o.tasks[i].phase = taskRetrying
	case StepSucceeded:
		o.step(e.Task, e.Step).done = true
		o.tasks[i].phase = taskPending
		o.recordRelease(e.Task, e.Step)
	case TaskSucceeded:
		o.step(e.Task, e.Step).done = true
		o.tasks[i].phase, o.tasks[i].verdict = taskSucceeded, v1alpha1.VerdictSatisfied
		o.recordRelease(e.Task, e.Step)
		for n := range o.tasks[i].steps {
			if !o.tasks[i].steps[n].done {
				wrong = "succeeded before its last step"
			}
		}
	case TaskFailed:
		phase, verdict, _ := o.verdict(i)
		if got := e.Verdict; got != verdict {
			wrong = fmt.Sprintf("the verdict is %s, and should be %s", got, verdict)
		}
		o.tasks[i].phase, o.tasks[i].verdict = phase, verdict
		o.tasks[i].ignoredAt = o.current(i)
		o.recordFailure()
	case TaskPaused:
		if phase, _, _ := o.verdict(i); e.Reason == ReasonFailed && phase != taskPaused {
			wrong = "paused, and should be " + string(phase)
		}
		if e.Reason == ReasonFailed {
			o.recordFailure()
		}
		for n := range o.def[i].Steps {
			if e.Reason == ReasonApproval && o.def[i].Steps[n].Name == e.Step {
				o.tasks[i].askedAt = n
			}
		}
		o.tasks[i].phase = taskPaused
	case TaskSkipped:
		if _, unmeetable := o.ready(i); !unmeetable {
			wrong = "skipped, though its edges can still be met"
		}
		o.tasks[i].phase = taskSkipped
	case TaskInterrupted:
		if !o.stopped {
			wrong = "interrupted while the run goes on"
		}
		o.tasks[i].phase = taskInterrupted
	case EdgeExpired:
		for n, need := range o.def[i].Needs {
			if need.Task == e.Need && need.Timeout > 0 && o.edge(i, n) == "open" {
				o.tasks[i].expired[n] = true
			}
		}
	case TaskReleased:
		o.reopen(i, false)
	case Decided:
		o.decided(i, e)
	case Resumed:
		if want := o.rerun(); !slices.Equal(e.Rerun, want) {
			wrong = fmt.Sprintf("%v run again, and %v should", e.Rerun, want)
		}
		o.stopped, o.ended = false, false
		o.resetHolds(e.Rerun)
		for _, name := range e.Rerun {
			o.reopen(o.at[name], o.tasks[o.at[name]].phase == taskSucceeded && o.def[o.at[name]].Always)
		}
		for i := range o.tasks {
			for n := range o.tasks[i].steps {
				o.tasks[i].steps[n].releasing = false
			}
		}
	case Verified:
		gone := make(map[int]bool)
		var names []string
		for _, g := range e.Gone {
			gone[o.at[g.Task]] = true
			names = append(names, g.Task)
		}
		want := slices.DeleteFunc(o.withHolds(gone), func(name string) bool { return slices.Contains(names, name) })
		if !slices.Equal(e.Rerun, want) {
			wrong = fmt.Sprintf("%v run again, and %v should", e.Rerun, want)
		}
		for _, g := range e.Gone {
			o.reopen(o.at[g.Task], true)
		}
		o.resetHolds(e.Rerun)
		for _, name := range e.Rerun {
			o.reopen(o.at[name], false)
		}
	case Aborted:
		if o.stopped {
			wrong = "a second verdict on the run"
		}
		o.stopped = true
		o.recordFailure()
	case RollbackStarted:
		if o.rollback {
			wrong = "a rollback of a rollback"
		}
		if !o.stopped {
			o.recordFailure()
		}
		o.stopped, o.rollback, o.ended = true, true, false
	case UndoStarted:
		if o.rollback == e.Release {
			wrong = "release and rollback are mixed up"
		}
		if !e.Release {
			wrong = o.undoOrder(i)
		}
		if !e.Release && o.pending > 0 {
			wrong = "undone before the error channel was done"
		}
		o.step(e.Task, e.Step).releasing, o.tasks[i].undoing = e.Release, o.step(e.Task, e.Step)
		if !o.step(e.Task, e.Step).started || o.step(e.Task, e.Step).undone {
			wrong = "nothing to undo"
		}
	case Undone:
		o.undone(i, e.Step)
	case UndoFailed:
		o.pending += o.onFailure
	case HandlerEnded:
		o.pending--
	case Ended:
		wrong = o.end(e)
		o.ended = true
	}
	return wrong
}

func (o *oracle) decided(i int, e Decided) {
	t := &o.tasks[i]
	switch e.Action {
	case ActRetry:
		o.reopen(i, false)
	case ActSucceed:
		if n := t.askedAt; e.StepOnly { // other steps follow, or an earlier one runs again
			t.steps[n].done, t.phase = true, taskPending
			o.recordRelease(e.Task, o.def[i].Steps[n].Name)
			return
		}
		t.phase, t.verdict = taskSucceeded, v1alpha1.VerdictSatisfied
		for n := range t.steps {
			t.steps[n].done = true
		}
	case ActIgnore:
		t.ignoredAt, t.phase, t.verdict = o.current(i), taskIgnored, v1alpha1.VerdictIgnored
	case ActMarkUndone:
		for n := range t.steps {
			if &t.steps[n] == t.undoing {
				o.undone(i, o.def[i].Steps[n].Name)
			}
		}
	case ActIgnoreChildren:
		t.phase, t.verdict = taskFailed, v1alpha1.VerdictHandled
	}
}

// undone records that a step was undone. In a rollback, undoing a release restores its hold, which must then be
// undone too.
func (o *oracle) undone(i int, name string) {
	step := o.step(o.def[i].Name, name)
	step.undone, step.releasing = true, false
	o.tasks[i].held = o.tasks[i].held && name != ""
	for _, r := range o.releases() {
		if own := &o.tasks[r.hold].steps[o.def[r.hold].OwnStep()]; o.rollback && r.task == i && &o.tasks[i].steps[r.step] == step && own.started {
			own.undone, o.tasks[r.hold].held = false, true
		}
	}
}

// recordFailure records a failure: the handlers run once per final failure and once per run.
func (o *oracle) recordFailure() {
	o.handlers++
	o.pending += o.onFailure
}

// undoOrder checks that a task is undone only after all its started descendants.
func (o *oracle) undoOrder(i int) string {
	for j := range o.def {
		if o.tasks[j].phase == taskRunning {
			return "undone while " + o.def[j].Name + " is in flight"
		}
		if o.touched(j) && o.isAbove(i, j) {
			return "undone before " + o.def[j].Name
		}
	}
	return ""
}

// end checks the conditions for the end of a run.
func (o *oracle) end(e Ended) string {
	for i := range o.def {
		for n, step := range o.tasks[i].steps {
			held := step.started && !step.undone && o.def[i].Steps[n].Holds
			if held && e.Phase != v1alpha1.RunFailed {
				return o.def[i].Name + " still holds something"
			}
		}
		switch e.Phase {
		case v1alpha1.RunSucceeded, v1alpha1.RunDegraded:
			if !o.isFinal(i) {
				return o.def[i].Name + " has not ended"
			}
		case v1alpha1.RunRolledBack:
			if o.touched(i) {
				return o.def[i].Name + " is not undone"
			}
		case v1alpha1.RunAborted:
			if p := o.tasks[i].phase; p == taskRunning || p == taskRetrying {
				return o.def[i].Name + " is still in flight"
			}
		}
	}
	if e.Phase == v1alpha1.RunRolledBack != o.rollback && e.Phase != v1alpha1.RunFailed {
		return "the wrong end"
	}
	return ""
}
