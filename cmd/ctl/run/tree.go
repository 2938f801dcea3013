package run

import (
	"fmt"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/internal/timespan"
	"scute.dev/workflow"
)

// phaseSymbol returns the symbol of a task's phase, and its color.
func phaseSymbol(p v1alpha1.TaskPhase) (string, term.Style) {
	switch p {
	case v1alpha1.TaskSucceeded:
		return "✓", term.Green
	case v1alpha1.TaskFailed, v1alpha1.TaskUndoFailed:
		return "✗", term.Red
	case v1alpha1.TaskIgnored, v1alpha1.TaskKept:
		return "!", term.Yellow
	case v1alpha1.TaskPaused, v1alpha1.TaskInterrupted:
		return "‖", term.Yellow
	case v1alpha1.TaskRunning, v1alpha1.TaskRetrying:
		return "▶", term.Cyan
	case v1alpha1.TaskUndoing:
		return "◀", term.Yellow
	case v1alpha1.TaskUndone:
		return "↶", term.Yellow
	default:
		return "·", term.Dim
	}
}

// tree returns a table of tasks. With detail the rows of a task's needs, hooks, attempts (if there are several) and decisions follow
// its row.
func (v view) tree(r *Run, tasks []v1alpha1.TaskStatus, detail bool) []string {
	t := term.Table{Header: []string{"TASK", "KIND", "PHASE", "TRIES", "TOOK", "WHAT"}, Wrap: 1, Indent: "  "}
	if detail {
		t.Header = []string{"TASK", "KIND", "PHASE", "VERDICT", "TRIES", "STARTED", "TOOK", "WHAT"}
	}
	var needs map[string][]workflow.Need
	if detail {
		needs = needsOf(r)
	}
	for i := range tasks {
		task := &tasks[i]
		glyph, as := phaseSymbol(task.Phase)
		row := []string{v.Paint.Text(as, glyph) + " " + task.Name, task.Kind, v.Paint.Text(as, string(task.Phase))}
		if detail {
			row = append(row, string(task.Verdict))
		}
		row = append(row, show.Tries(task.Attempts))
		if detail {
			row = append(row, v.after(r, task))
		}
		t.Add(append(row, v.taskDuration(task), term.Clean(task.Message))...)
		if detail {
			v.addBranches(&t, r, task, needs[task.Name])
		}
	}
	lines := t.Lines(v.Paint, v.Width)
	if n := r.Status.TasksOmitted; n > 0 && len(tasks) < r.Status.Counts.Tasks {
		lines = append(lines, fmt.Sprintf("  and %d more tasks", n))
	}
	return lines
}

func (v view) taskDuration(t *v1alpha1.TaskStatus) string {
	switch {
	case t.StartedAt.IsZero():
		return "-"
	case t.FinishedAt.IsZero():
		return span(v.Now.Sub(t.StartedAt.Time))
	default:
		return span(t.FinishedAt.Sub(t.StartedAt.Time))
	}
}

// after returns when a task first started, relative to the start of the run.
func (v view) after(r *Run, t *v1alpha1.TaskStatus) string {
	if t.StartedAt.IsZero() || r.Status.StartedAt.IsZero() {
		return "-"
	}
	return "+" + span(t.StartedAt.Sub(r.Status.StartedAt.Time))
}

func needsOf(r *Run) map[string][]workflow.Need {
	if r.State == nil {
		return nil
	}
	needs := make(map[string][]workflow.Need)
	for _, t := range r.State.Definition().Tasks {
		needs[t.Name] = t.Needs
	}
	return needs
}

// addBranches adds the rows below a task.
func (v view) addBranches(t *term.Table, r *Run, task *v1alpha1.TaskStatus, needs []workflow.Need) {
	type branch struct{ what, phase, tries, started, took, detail string }
	var all []branch
	if len(needs) > 0 {
		all = append(all, branch{what: "needs", detail: needWords(needs)})
	}
	h := r.History.Task(task.Name)
	if h != nil {
		for _, s := range h.Steps {
			if s.Name != "" {
				all = append(all, branch{what: s.Name, phase: lastOutcome(s.Attempts), tries: show.Tries(len(s.Attempts)), took: v.attemptDuration(last(s.Attempts)), detail: last(s.Attempts).Message})
			} else if len(s.Attempts) > 1 {
				for _, a := range s.Attempts {
					all = append(all, branch{what: fmt.Sprintf("attempt %d", a.N), phase: orInProgress(a.Outcome), started: v.since(r, a.Started), took: v.attemptDuration(a), detail: a.Message})
				}
			}
			for _, a := range s.Undos {
				all = append(all, branch{what: strings.TrimSpace("undo " + s.Name), phase: orInProgress(a.Outcome), tries: fmt.Sprint(a.N), started: v.since(r, a.Started), took: v.attemptDuration(a), detail: a.Message})
			}
		}
		for _, w := range h.Words {
			detail := "by " + w.Actor + ", " + term.Ago(v.Now, w.At) + " (" + term.Second(w.At) + ")"
			if w.Reason != "" {
				detail = w.Reason + "; " + detail
			}
			all = append(all, branch{what: "decided", phase: w.What, started: v.since(r, w.At), detail: detail})
		}
	}
	for i, b := range all {
		fork := "├ "
		if i == len(all)-1 {
			fork = "└ "
		}
		dim := func(s string) string { return v.Paint.Text(term.Dim, s) }
		t.Add(dim(fork+b.what), "", dim(b.phase), "", dim(b.tries), dim(b.started), dim(b.took), dim(term.Clean(b.detail)))
	}
}

func (v view) since(r *Run, at time.Time) string {
	if at.IsZero() || r.Status.StartedAt.IsZero() {
		return ""
	}
	return "+" + span(at.Sub(r.Status.StartedAt.Time))
}

func (v view) attemptDuration(a Attempt) string {
	switch {
	case a.Started.IsZero():
		return ""
	case a.Ended.IsZero():
		return span(v.Now.Sub(a.Started))
	default:
		return span(a.Ended.Sub(a.Started))
	}
}

func last(list []Attempt) Attempt {
	if len(list) == 0 {
		return Attempt{}
	}
	return list[len(list)-1]
}

func lastOutcome(list []Attempt) string {
	if len(list) == 0 {
		return ""
	}
	return orInProgress(last(list).Outcome)
}

func orInProgress(outcome string) string {
	if outcome == "" {
		return "in progress"
	}
	return outcome
}

func needWords(needs []workflow.Need) string {
	words := make([]string, len(needs))
	for i, n := range needs {
		w := n.Task
		switch n.On {
		case v1alpha1.OnFailure:
			w += " to fail"
		case v1alpha1.OnCompletion:
			w += " to end"
		}
		if n.Optional {
			w += " (optional)"
		}
		if n.Timeout > 0 {
			w += " within " + timespan.Text(time.Duration(n.Timeout))
		}
		words[i] = w
	}
	return strings.Join(words, ", ")
}

// describe returns the description of a run, without its timeline.
func (v view) describe(r *Run) []string {
	out := v.Head("Run", r.Namespace, r.Name, "run", r.ID)
	if r.State != nil && r.State.IsDefined() {
		h := r.State.Header
		if h.Workflow != nil {
			out = append(out, v.Field("Workflow", h.Workflow.Name))
		}
		out = append(out, v.Field("Definition", "sha256 "+r.State.Hash[:min(12, len(r.State.Hash))]+", failure policy "+string(h.Policy)))
		if r.State.Holder != "" {
			out = append(out, v.Field("Driven by", r.State.Holder))
		}
	}
	out = append(append(out, ""), v.statusLines(r)...)
	out = append(append(out, "", "Tasks:"), v.tree(r, r.Tasks(), true)...)
	return append(out, v.decisionTables(r)...)
}

// decisionTables returns tables of the decisions about the run as a whole, and of its handlers.
func (v view) decisionTables(r *Run) []string {
	if r.History == nil {
		return nil
	}
	handlers := &term.Table{Header: []string{"HANDLER", "OUTCOME", "TOOK", "WHAT"}, Wrap: 1}
	if h := r.History.Task(""); h != nil {
		for _, s := range h.Steps {
			handlers.Add(s.Name, lastOutcome(s.Attempts), v.attemptDuration(last(s.Attempts)), term.Clean(last(s.Attempts).Message))
		}
	}
	decisions := &term.Table{Header: []string{"WHEN", "WHO", "WHAT", "WHY"}, Wrap: 1}
	for _, w := range r.History.Words {
		decisions.Add(term.Ago(v.Now, w.At)+" ("+term.Second(w.At)+")", w.Actor, w.What, term.Clean(w.Reason))
	}
	return append(v.Section("Handlers of the run's failure", handlers), v.Section("Decisions about the run", decisions)...)
}

// line formats a fact of a run as one line: time, task, and the fact.
func line(e show.Event) string {
	who := e.Line.About
	if who == "" {
		who = "run"
	}
	line := term.Exact(e.Time) + "  " + who + "  " + e.Line.Name
	if e.Line.Detail != "" {
		line += ": " + e.Line.Detail
	}
	return term.Clean(line)
}
