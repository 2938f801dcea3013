package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
)

// Change describes what a migration does to one task.
type Change struct {
	Task   string       `json:"task"`
	Kind   changeKind   `json:"kind"`
	Action changeAction `json:"action"`
	Note   string       `json:"note,omitempty"`
}

type changeKind string

type changeAction string

// How a task differs between the two definitions, and what a migration does with the task.
const (
	Unchanged changeKind = "unchanged"
	Changed   changeKind = "changed"
	Added     changeKind = "added"
	Removed   changeKind = "removed"

	Keep      changeAction = "keep"
	Rerun     changeAction = "rerun"
	Run       changeAction = "run"
	KeepUndo  changeAction = "keep-undo" // drop it from the graph; a rollback still undoes it
	Forget    changeAction = "forget"    // drop it: it never started
	Undecided changeAction = "undecided" // an operator must choose keep or rerun, or allow the backfill
)

// Choices are an operator's answers for the undecided tasks of a plan.
type Choices struct {
	Keep, Rerun, Backfill []string
}

// Plan compares the run's definition with another one. ok is false while a task is undecided.
func Plan(s *State, to *Definition, c Choices) (plan []Change, ok bool) {
	ok = true
	upstream := upstreamOfDone(s, to)
	names := make(map[string]bool, len(to.Tasks))
	for i := range to.Tasks {
		name := to.Tasks[i].Name
		names[name] = true
		ch := Change{Task: name}
		old, known := s.index(name)
		was := ""
		if known {
			was = s.changedKind(old, &to.Tasks[i])
		}
		if known && s.tasks[old].removed && s.tasks[old].phase != taskSucceeded {
			known = false // it never ended: treat it as an added task
		}
		switch {
		case was != "":
			ch.Kind, ch.Action, ch.Note = Changed, Undecided, fmt.Sprintf("only kind %s can undo its effects: rename the task, or the hook, that now has "+
				"another kind", was)
		case !known && upstream[name] && !slices.Contains(c.Backfill, name):
			ch.Kind, ch.Action, ch.Note = Added, Undecided, "tasks that have already started depend on it: allow it with --backfill "+name
		case !known:
			ch.Kind, ch.Action = Added, Run
		case sameTask(&s.def[old], &to.Tasks[i]):
			ch.Kind, ch.Action = Unchanged, Keep
		case s.tasks[old].phase == taskPaused && s.tasks[old].pauseReason == ReasonHeld:
			ch.Kind, ch.Action, ch.Note = Changed, Keep, "it is held by an operator and stays held"
		case s.mustRun(old):
			ch.Kind, ch.Action = Changed, Run
		case slices.Contains(c.Rerun, name):
			ch.Kind, ch.Action = Changed, Rerun
		case slices.Contains(c.Keep, name):
			ch.Kind, ch.Action = Changed, Keep
		default:
			ch.Kind, ch.Action, ch.Note = Changed, Undecided, fmt.Sprintf("it is already %s: use --keep %s or --rerun %s", s.taskPhase(old), name, name)
		}
		ok = ok && ch.Action != Undecided
		plan = append(plan, ch)
	}
	for i := range s.def {
		if names[s.def[i].Name] {
			continue
		}
		ch := Change{Task: s.def[i].Name, Kind: Removed, Action: Forget}
		if s.nextUndo(i) >= 0 {
			ch.Action = KeepUndo
		}
		plan = append(plan, ch)
	}
	return plan, ok
}

// changedKind returns the old kind of the first step that has something to undo and whose kind
// changes, or "". A kind can neither continue nor undo a step of another kind.
func (s *State) changedKind(i int, to *Task) string {
	for n := range s.def[i].Steps {
		was, step := &s.tasks[i].steps[n], &s.def[i].Steps[n]
		undo := was.undo != nil || step.Undo != nil && !step.Undo.None
		if !was.started || was.undone || was.adopted || !undo || step.removed {
			continue
		}
		if slices.ContainsFunc(to.Steps, func(is Step) bool { return is.Name == step.Name && is.Kind != step.Kind }) {
			return step.Kind
		}
	}
	return ""
}

// mustRun reports whether a changed task runs in its new form without an operator's decision. It
// returns false if the task may run at most once and its outcome is unknown.
func (s *State) mustRun(i int) bool {
	t := &s.tasks[i]
	if s.def[i].AtMostOnce && (t.phase == taskInterrupted || t.phase == taskPaused && t.pauseReason == ReasonUnknown) && s.def[i].Steps[t.step].Name == "" {
		return false
	}
	return !isFinal(t.phase) || t.verdict == v1alpha1.VerdictBlocking
}

func choicesOf(plan []Change) (c Choices) {
	for _, ch := range plan {
		switch {
		case ch.Action == Rerun:
			c.Rerun = append(c.Rerun, ch.Task)
		case ch.Action == Keep && ch.Kind == Changed:
			c.Keep = append(c.Keep, ch.Task)
		case ch.Action == Run && ch.Kind == Added:
			c.Backfill = append(c.Backfill, ch.Task)
		}
	}
	return c
}

func upstreamOfDone(s *State, to *Definition) map[string]bool {
	needs := make(map[string][]Need, len(to.Tasks))
	for i := range to.Tasks {
		needs[to.Tasks[i].Name] = to.Tasks[i].Needs
	}
	up := make(map[string]bool)
	var mark func(name string)
	mark = func(name string) {
		for _, n := range needs[name] {
			if !up[n.Task] {
				up[n.Task] = true
				mark(n.Task)
			}
		}
	}
	for i := range s.def {
		if !s.tasks[i].startedAt.IsZero() {
			mark(s.def[i].Name)
		}
	}
	return up
}

func sameTask(a, b *Task) bool {
	x, errX := json.Marshal(withoutReleases(*a))
	y, errY := json.Marshal(withoutReleases(*b))
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// migrate returns the events of a migration. It fails if an effect is in flight or a task of the
// plan is undecided.
func (s *State) migrate(in Migrate) ([]Event, error) {
	switch {
	case s.Finished() || s.stopping != nil && s.ended == nil || s.isRollingBack():
		return nil, fmt.Errorf("the run is %s: its definition cannot be changed any more", CurrentPhase(s))
	case s.inFlight() > 0:
		return nil, fmt.Errorf("%d tasks are in flight: pause the run first, and wait until it is Paused", s.inFlight())
	}
	for _, c := range in.Plan {
		if c.Action == Undecided {
			return nil, fmt.Errorf("task %q is undecided: %s", c.Task, c.Note)
		}
	}
	if now, _ := Plan(s, in.To, choicesOf(in.Plan)); !slices.Equal(now, in.Plan) {
		return nil, fmt.Errorf("the run has changed since this plan was made: make the plan again and review it")
	}
	events := definedParts(in.To)
	return append(events, Migrated{Header: in.To.Header, Hash: in.To.Hash(), Plan: in.Plan}), nil
}

// maxPartBytes limits the tasks of one Defined event, in bytes of JSON.
const maxPartBytes = 128 << 10

// taskLimit limits the size of a task, and of the header, in bytes of JSON: each must fit into one
// message of the log.
const taskLimit = 512 << 10

func definedParts(d *Definition) []Event {
	var parts []Defined
	size := maxPartBytes + 1
	for _, t := range d.Tasks {
		data, _ := json.Marshal(t) // as in Hash, the error is impossible
		if size+len(data) > maxPartBytes {
			parts, size = append(parts, Defined{Part: len(parts)}), 0
		}
		last := &parts[len(parts)-1]
		last.Tasks, size = append(last.Tasks, t), size+len(data)
	}
	events := make([]Event, len(parts))
	for i := range parts {
		parts[i].Of = len(parts)
		events[i] = parts[i]
	}
	return events
}

// Start returns the events that start a run. origin is set only for a local run.
func Start(d *Definition, origin string, now time.Time) []Event {
	started := Started{Header: d.Header, Hash: d.Hash(), KeyForm: StepKeys, Origin: origin}
	if d.Deadline > 0 {
		started.Deadline = now.Add(time.Duration(d.Deadline))
	}
	return append(definedParts(d), started)
}
