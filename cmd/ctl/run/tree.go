package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
	"scute.dev/workflow"
)

// tree returns a table of tasks. With detail, each task's row is followed by rows for its needs,
// hooks, attempts and decisions.
func (v output) tree(r *Run, tasks []v1alpha1.TaskStatus, detail bool) []string {
	columns := func(row ...string) []string {
		if detail {
			return row
		}
		return slices.Concat(row[:3], row[4:5], row[6:]) // without VERDICT and STARTED
	}
	t := cli.Table{Header: columns("TASK", "KIND", "PHASE", "VERDICT", "TRIES", "STARTED", "TOOK", "WHAT"), Wrap: 1, Indent: "  "}
	needs := make(map[string][]workflow.Need)
	if detail && r.State != nil {
		for _, t := range r.State.Definition().Tasks {
			needs[t.Name] = t.Needs
		}
	}
	for i := range tasks {
		task := &tasks[i]
		tone := kit.ToneOf(string(task.Phase))
		began := timeOf(task.StartedAt)
		t.Add(columns(v.Paint.Text(tone.Style(), tone.Sign)+" "+task.Name, task.Kind, v.Word(string(task.Phase)), string(task.Verdict), kit.Tries(task.Attempts),
			cmp.Or(v.since(r, began), "-"), cmp.Or(v.elapsed(began, timeOf(task.FinishedAt), span), "-"), cli.Clean(task.Message))...)
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

// elapsed formats the time from start to end, or to now if end is zero. It returns "" if start is
// zero.
func (v output) elapsed(start, end time.Time, format func(time.Duration) string) string {
	switch {
	case start.IsZero():
		return ""
	case end.IsZero():
		end = v.Now
	}
	return format(end.Sub(start))
}

// since returns when something started, relative to the start of the run.
func (v output) since(r *Run, at time.Time) string {
	if at.IsZero() || r.Status.StartedAt.IsZero() {
		return ""
	}
	return "+" + span(at.Sub(r.Status.StartedAt.Time))
}

func timeOf(t *metav1.Time) time.Time { return ptr.Deref(t, metav1.Time{}).Time }

// addBranches adds the rows below a task: needs, attempts of steps and undos, and decisions. If the
// task's own step had only one attempt, the task's row shows it, and addBranches omits it.
func (v output) addBranches(t *cli.Table, r *Run, task *v1alpha1.TaskStatus, needs []workflow.Need) {
	type branch struct{ what, phase, tries, started, took, detail string }
	var all []branch
	if len(needs) > 0 {
		all = append(all, branch{what: "needs", detail: needWords(needs)})
	}
	h := r.History.Task(task.Name)
	for _, a := range h.Attempts {
		what, tries := a.Step, fmt.Sprint(a.N)
		switch {
		case a.Undo:
			what = strings.TrimSpace("undo " + a.Step)
		case a.Step == "" && len(h.of("", false)) == 1:
			continue
		case a.Step == "":
			what, tries = fmt.Sprintf("attempt %d", a.N), ""
		}
		all = append(all, branch{what, cmp.Or(a.Outcome, inProgress), tries, v.since(r, a.Started), v.elapsed(a.Started, a.Ended, span), a.Message})
	}
	for _, w := range h.Words {
		detail := "by " + w.Actor + ", " + cli.Ago(v.Now, w.At) + " (" + cli.Second(w.At) + ")"
		if w.Reason != "" {
			detail = w.Reason + "; " + detail
		}
		all = append(all, branch{what: "decided", phase: w.What, started: v.since(r, w.At), detail: detail})
	}
	for i, b := range all {
		fork := "├ "
		if i == len(all)-1 {
			fork = "└ "
		}
		dim := func(s string) string { return v.Paint.Text(cli.Dim, s) }
		t.Add(dim(fork+b.what), "", dim(b.phase), "", dim(b.tries), dim(b.started), dim(b.took), dim(cli.Clean(b.detail)))
	}
}

const inProgress = "in progress"

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
			w += " within " + view.Duration(time.Duration(n.Timeout))
		}
		words[i] = w
	}
	return strings.Join(words, ", ")
}

// describe returns the description of a run without the timeline.
func (v output) describe(r *Run) []string {
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

// decisionTables returns the tables of decisions, and of the handlers of the run's failure.
func (v output) decisionTables(r *Run) []string {
	if r.History == nil {
		return nil
	}
	handlers := &cli.Table{Header: []string{"HANDLER", "OUTCOME", "TOOK", "WHAT"}, Wrap: 1}
	for _, a := range r.History.Task("").Attempts {
		handlers.Add(a.Step, cmp.Or(a.Outcome, inProgress), v.elapsed(a.Started, a.Ended, span), cli.Clean(a.Message))
	}
	decisions := &cli.Table{Header: []string{"WHEN", "WHO", "WHAT", "WHY"}, Wrap: 1}
	for _, w := range r.History.Words {
		decisions.Add(cli.Ago(v.Now, w.At)+" ("+cli.Second(w.At)+")", w.Actor, w.What, cli.Clean(w.Reason))
	}
	return append(v.Section("Handlers of the run's failure", handlers), v.Section("Decisions about the run", decisions)...)
}

// line formats a fact of a run as one line: time, task, and fact.
func line(e kit.Event) string {
	line := cli.Exact(e.Time) + "  " + cmp.Or(e.Line.About, "run") + "  " + e.Line.Name
	if e.Line.Detail != "" {
		line += ": " + e.Line.Detail
	}
	return cli.Clean(line)
}
