package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	runs "scute.dev/cmd/ctl/run"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
	"scute.dev/workflow"
)

const (
	maxTasks    = 100
	maxAttempts = 100
)

type taskRow struct {
	chip
	Name, Kind, Link, Message string
	Attempts                  int
	Started                   time.Time
	Took                      time.Duration
	Lasts                     bool // still in progress: Took ends at the page's moment
	Chosen                    bool
}

type runPage struct {
	subject
	Run     *runs.Run
	Phase   chip
	Holder  string
	Policy  string
	Ended   time.Time
	Counts  []kit.Count
	Picture picture
	Gantt   *gantt
	Task    *panel
	Tasks   []taskRow
	// Of is the position in the list: among the tasks of the box Group, or among all tasks if there is
	// no Group.
	Of         position
	All        int
	Group      string
	Words      []runs.Decision
	Migrations []migration
}

// migration describes a change of the run's definition. It has at most maxTasks rows of each kind
// of change.
type migration struct {
	runs.Migration
	More int // omitted rows
}

func migrations(list []runs.Migration) (out []migration) {
	for _, m := range list {
		changes, fields := m.Changes, m.Fields
		m.Changes, m.Fields = changes[:min(len(changes), maxTasks)], fields[:min(len(fields), maxTasks)]
		out = append(out, migration{Migration: m, More: len(changes) + len(fields) - len(m.Changes) - len(m.Fields)})
	}
	return out
}

func run(v *view) (any, error) {
	f, err := feed.Find[*runs.Fold](v.Snapshot, eventlog.KindRun, v.Query.Get("id"))
	if err != nil {
		return nil, err
	}
	r := f.Refresh()
	p := &runPage{Run: r, Phase: newChip(r.Phase()), Holder: r.State.Holder, Policy: string(r.State.Policy), Words: r.History.Words, Migrations: migrations(r.History.Migrations)}
	v.Title = "run " + r.Name
	if at := r.Status.FinishedAt; at != nil {
		p.Ended = at.Time
	}
	definition, status := r.State.Definition(), r.Tasks()
	p.All = len(status)
	if c := r.Status.Counts; c.Tasks > 0 {
		p.Counts = append([]kit.Count{{Name: "Done", Done: c.Succeeded + c.Ignored + c.Skipped, Of: c.Tasks}}, runs.Counts(c)...)
	}
	p.Picture = v.picture(definition.Tasks, status)
	if err := p.list(v, definition.Tasks, status); err != nil {
		return nil, err
	}
	if g, drawn := v.gantt(r, started(status)); drawn {
		p.Gantt = &g
	}
	if name := v.Query.Get("task"); name != "" {
		if p.Task, err = v.panel(r, definition.Tasks, name); err != nil {
			return nil, err
		}
	}
	p.subject, err = v.about(runs.PageCommands(v.site.kit, r), runs.Actions(r))
	return p, err
}

// started returns the tasks that have started, in the order of their first start. If there are
// many, tasks that are in progress or have failed come before finished ones.
func started(status []v1alpha1.TaskStatus) (names []string) {
	var of []v1alpha1.TaskStatus
	for _, t := range status {
		if !t.StartedAt.IsZero() {
			of = append(of, t)
		}
	}
	if len(of) > ganttRows {
		slices.SortStableFunc(of, func(a, b v1alpha1.TaskStatus) int { return cmp.Compare(rank(a.Phase), rank(b.Phase)) })
	}
	first := of[:min(len(of), ganttRows)]
	slices.SortStableFunc(first, func(a, b v1alpha1.TaskStatus) int { return a.StartedAt.Time.Compare(b.StartedAt.Time) })
	for _, t := range of {
		names = append(names, t.Name)
	}
	return names
}

// list sets the tasks on the chosen page of the list. In a long list, tasks that need attention
// come first.
func (p *runPage) list(v *view, tasks []workflow.Task, status []v1alpha1.TaskStatus) error {
	group, err := v.number("group")
	if err != nil {
		return err
	}
	edges, _ := edgesOf(tasks)
	list := status
	if groups := bundles(tasks, edges); group > 0 && group <= len(groups) {
		p.Group, list = groups[group-1].name, nil
		for _, i := range groups[group-1].tasks {
			list = append(list, status[i])
		}
	}
	if len(list) > maxTasks {
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(a, b v1alpha1.TaskStatus) int { return cmp.Compare(rank(a.Phase), rank(b.Phase)) })
	}
	if list, p.Of, err = paged(v, longList{Param: "page", Label: "Pages of the list", Anchor: "#tasks", Rows: maxTasks}, list); err != nil {
		return err
	}
	for _, t := range list {
		p.Tasks = append(p.Tasks, v.task(t))
	}
	return nil
}

func (v *view) task(t v1alpha1.TaskStatus) taskRow {
	row := taskRow{
		chip: newChip(t.Phase), Name: t.Name, Kind: t.Kind, Message: t.Message, Attempts: t.Attempts, Chosen: v.Query.Get("task") == t.Name,
		Link: v.With("task", t.Name) + "#task",
	}
	if !t.StartedAt.IsZero() {
		row.Started, row.Took = t.StartedAt.Time, v.Moment.Sub(t.StartedAt.Time)
		row.Lasts = t.FinishedAt.IsZero()
		if !row.Lasts {
			row.Took = t.FinishedAt.Sub(t.StartedAt.Time)
		}
	}
	return row
}

type panel struct {
	taskRow
	Needs    []workflow.Need
	Policy   string
	From     string
	Return   bool
	Input    string
	Output   string
	Steps    []stepRow
	Words    []runs.Decision
	Commands []string
	Printed  *printed
}

// stepRow is a step of a task: a hook, or the task's own step, whose name is "". It contains the
// last attempts at the step, and the number of omitted attempts.
type stepRow struct {
	Name, Kind string
	Tries      []attemptBar
	Earlier    int
}

func (v *view) panel(r *runs.Run, tasks []workflow.Task, name string) (*panel, error) {
	i := slices.IndexFunc(tasks, func(t workflow.Task) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: the run has no task %q at this moment", ErrQuery, name)
	}
	t, s := &tasks[i], r.State.TaskStatus(i)
	p := &panel{taskRow: v.task(s), Needs: t.Needs, Policy: string(t.Policy), From: t.PolicySource, Return: t.PointOfNoReturn}
	if _, with, ok := r.State.CurrentInputs(name); ok {
		p.Input = kit.Indent(with)
	}
	if s.Output != nil {
		p.Output = kit.Indent(s.Output.Raw)
	}
	h := r.History.Task(name)
	for _, step := range t.Steps {
		one := stepRow{Name: step.Name, Kind: step.Kind}
		for _, a := range h.Attempts {
			if a.Step == step.Name {
				one.Tries = append(one.Tries, tryOf(a, v.Moment))
			}
		}
		one.Earlier = max(0, len(one.Tries)-maxAttempts)
		one.Tries = one.Tries[one.Earlier:]
		p.Steps = append(p.Steps, one)
	}
	p.Words, p.Printed = h.Words, v.printed(r, name)
	if s.Phase == v1alpha1.TaskPaused || s.Phase == v1alpha1.TaskUndoFailed {
		p.Commands = v.commands([]string{runs.DecideCommand(v.site.kit, r, name)})
	}
	return p, nil
}

func tryOf(a runs.Attempt, now time.Time) attemptBar {
	t := attemptBar{chip: newChip(a.Outcome), Undo: a.Undo, Began: a.Started, Took: endOf(a, now).Sub(a.Started), Attempt: a.N, Description: a.Message}
	if a.Outcome == "" {
		t.Word = "in progress"
	}
	return t
}
