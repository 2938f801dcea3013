package workflow

import (
	"slices"
	"time"
)

// order contains edges that only undos follow. They connect tasks that a migration removed with the
// tasks before and after them.
type order struct{ children, parents map[int][]int }

// applyMigrated rebuilds the graph and carries over the state that the plan keeps. A removed task
// with something to undo stays in the graph, without edges, so that a rollback can undo the task.
func (s *State) applyMigrated(e Migrated, at time.Time) {
	old := *s
	tasks := s.parts
	for i := range tasks {
		tasks[i].Steps = old.withRemoved(&tasks[i])
	}
	for _, c := range e.Plan {
		if i, ok := old.index(c.Task); ok && c.Action == KeepUndo {
			kept := old.def[i]
			kept.Needs = nil
			tasks = append(tasks, kept)
		}
	}
	s.deadline = shiftDeadline(old.deadline, old.Deadline, e.Deadline, at)
	s.Header, s.Hash = e.Header, e.Hash
	for _, members := range []*set{&s.ready, &s.unmeetable, &s.running, &s.lost, &s.undoable, &s.undoing, &s.holding} {
		members.clear()
	}
	s.clocks, s.approvals = [4]clock{}, 0
	s.undoCounts = [undoFailed + 1]int{}
	s.load(tasks)
	for _, c := range e.Plan {
		from, had := old.byName[c.Task]
		to, has := s.byName[c.Task]
		if had && has {
			s.carryTask(to, &old.def[from], &old.tasks[from], c, at)
		}
	}
	for i := range s.tasks {
		if from, had := old.byName[s.def[i].Name]; had {
			s.carryEdges(i, &old, from)
		}
	}
	for i := range s.tasks {
		if from, had := old.byName[s.def[i].Name]; had && !s.tasks[i].ended() && (old.tasks[from].ended() || old.tasks[from].rerunning) {
			s.setRerunning(i, true)
		}
	}
	for i := range s.tasks {
		if began := s.tasks[i].startedAt; !began.IsZero() {
			s.startEdges(i, began)
		}
	}
	if s.ended == nil && !s.paused { // if the run is paused or has ended, the resume reacquires them
		s.reacquireHolds(at)
	}
	s.keepUndoOrder(&old)
	s.carryHandlers(&old)
}

func (s *State) carryHandlers(old *State) {
	s.handlers, s.handling = nil, 0
	for _, h := range old.handlers {
		if h.handler = stepNamed(s.OnFailure, old.OnFailure[h.handler].Name); h.handler < 0 {
			continue
		}
		s.handlers = append(s.handlers, h)
		if h.running {
			s.handling++
		}
	}
}

// withRemoved returns t's steps and those hooks that the new definition lacks but that still have
// something to undo.
func (s *State) withRemoved(t *Task) []Step {
	i, ok := s.index(t.Name)
	if !ok {
		return t.Steps
	}
	var before, after []Step
	for n, step := range s.def[i].Steps {
		if was := &s.tasks[i].steps[n]; stepNamed(t.Steps, step.Name) >= 0 || !was.started || was.undone {
			continue
		}
		if step.removed = true; n < s.def[i].OwnStep() {
			before = append(before, step)
		} else {
			after = append(after, step)
		}
	}
	return slices.Concat(before, t.Steps, after)
}

func shiftDeadline(at time.Time, was, is Duration, now time.Time) time.Time {
	switch {
	case is == 0:
		return time.Time{}
	case at.IsZero():
		return now.Add(time.Duration(is))
	default:
		return at.Add(time.Duration(is) - time.Duration(was))
	}
}

func (s *State) carryTask(i int, was *Task, old *taskState, c Change, at time.Time) {
	t := &s.tasks[i]
	t.startedAt, t.attempts, t.questions, t.message, t.pauseReason = old.startedAt, old.attempts, old.questions, old.message, old.pauseReason
	for n := range t.steps {
		if from := stepNamed(was.Steps, s.def[i].Steps[n].Name); from >= 0 {
			t.steps[n] = old.steps[from]
		}
	}
	switch c.Action {
	case KeepUndo:
		t.removed = true
		phase, verdict := old.phase, old.verdict
		if phase != taskSucceeded {
			phase, verdict, t.planned, t.message = taskSkipped, "", true, "it is no longer in the definition"
		}
		s.setPhase(i, phase, verdict, at)
	case Keep:
		t.step, t.failures, t.lost, t.recreate = s.stepIndex(i, was.Steps[old.step].Name), old.failures, old.lost, old.recreate
		t.planned, t.skipsChildren = old.planned, old.skipsChildren
		phase := old.phase
		if phase == taskRetrying || phase == taskRunning {
			phase = taskPending
		}
		if s.def[i].Steps[t.step].removed {
			t.step = s.firstStep(i)
		}
		s.setAwaitingApproval(i, old.awaitingApproval, old.expiresAt)
		s.setPhase(i, phase, old.verdict, at)
		t.pausedAt = old.pausedAt
	default: // the task runs all of its steps, for the first time or again
		t.pauseReason, t.message = "", ""
		for n := range t.steps {
			t.steps[n].done, t.steps[n].firstAttempt, t.steps[n].with = false, 0, nil
		}
		t.step = s.firstStep(i)
	}
	if isFinal(t.phase) {
		t.endedAt = old.endedAt
	}
	if s.heldStep(i) >= 0 {
		s.holding.put(i, true)
	}
}

func (s *State) carryEdges(i int, old *State, from int) {
	for n, need := range s.def[i].Needs {
		was := slices.Index(old.def[from].Needs, need)
		if was < 0 || was >= len(old.tasks[from].edges) {
			continue
		}
		e, before := &s.tasks[i].edges[n], &old.tasks[from].edges[was]
		e.expires = before.expires
		if before.expired {
			s.setEdge(child{i, n}, edgeUnsatisfiable)
			e.expired = true
		} else if e.state == edgeOpen && !e.expires.IsZero() {
			s.addAlarm(e.expires, i, n)
		}
	}
}

// keepUndoOrder keeps removed tasks at their places in the order of undos, except where the new
// graph has the opposite order.
func (s *State) keepUndoOrder(old *State) {
	s.removedOrder = order{make(map[int][]int), make(map[int][]int)}
	add := func(parent, kid string) {
		p, known := s.index(parent)
		k, too := s.index(kid)
		if known && too && !slices.Contains(s.removedOrder.children[p], k) && !s.isBelow(k, p) {
			s.removedOrder.children[p] = append(s.removedOrder.children[p], k)
			s.removedOrder.parents[k] = append(s.removedOrder.parents[k], p)
		}
	}
	for i := range s.tasks {
		if !s.tasks[i].removed {
			continue
		}
		name := s.def[i].Name
		from := old.byName[name]
		for _, c := range old.children[from] {
			add(name, old.def[c.task].Name)
		}
		for _, k := range old.removedOrder.children[from] {
			add(name, old.def[k].Name)
		}
		for _, e := range old.tasks[from].edges {
			add(old.def[e.parent].Name, name)
		}
		for _, p := range old.removedOrder.parents[from] {
			add(old.def[p].Name, name)
		}
	}
}

// isBelow reports whether the task to is a descendant of the task from in the order of undos.
func (s *State) isBelow(from, to int) bool {
	seen := map[int]bool{from: true}
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		if queue[0] == to {
			return true
		}
		visit := func(i int) {
			if !seen[i] {
				seen[i] = true
				queue = append(queue, i)
			}
		}
		for _, c := range s.children[queue[0]] {
			visit(c.task)
		}
		for _, k := range s.removedOrder.children[queue[0]] {
			visit(k)
		}
	}
	return false
}
