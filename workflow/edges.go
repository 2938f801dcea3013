package workflow

import (
	"fmt"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/view"
)

func (s *State) load(tasks []Task) {
	s.def = tasks
	s.byName = make(map[string]int, len(tasks))
	s.children = make([][]child, len(tasks))
	s.tasks = make([]taskState, len(tasks))
	s.stage, s.stageRemaining, s.blocking = StagePre, [3]int{}, 0
	s.phaseCounts = map[taskPhase]int{taskPending: len(tasks)}
	for i := range tasks {
		s.byName[tasks[i].Name] = i
		s.stageRemaining[tasks[i].Stage]++
		s.tasks[i] = taskState{phase: taskPending, steps: make([]stepState, len(tasks[i].Steps))}
	}
	for i := range tasks {
		t := &s.tasks[i]
		for n, need := range tasks[i].Needs {
			parent, ok := s.byName[need.Task]
			if !ok {
				parent = i // Build rejects it; if a log contains it anyway, the task waits for itself
			}
			t.edges = append(t.edges, edge{parent: parent})
			s.children[parent] = append(s.children[parent], child{i, n})
			t.edgeCounts(need)[edgeOpen]++
		}
	}
	s.releases = releases(tasks, s.byName)
	s.openStages()
}

func (t *taskState) edgeCounts(need Need) *[edgeUnsatisfiable + 1]int {
	if need.Optional {
		return &t.optional
	}
	return &t.required
}

// openStages makes the next stage the current one when all tasks of the current stage have ended.
func (s *State) openStages() {
	for {
		for i := range s.def {
			if s.def[i].Stage == s.stage {
				s.evaluate(i)
			}
		}
		if s.stageRemaining[s.stage] > 0 || s.stage == StagePost {
			return
		}
		s.stage++
	}
}

// evaluate updates whether a task is ready, and whether it can never start.
func (s *State) evaluate(i int) {
	t := &s.tasks[i]
	ready, unmeetable := false, false
	if t.phase == taskPending && s.def[i].Stage <= s.stage {
		open, satisfied, unsatisfiable := t.optional[edgeOpen], t.optional[edgeSatisfied], t.optional[edgeUnsatisfiable]
		unmeetable = t.required[edgeUnsatisfiable] > 0 || unsatisfiable > 0 && open+satisfied == 0
		ready = !unmeetable && t.required[edgeOpen] == 0 && (open == 0 || satisfied > 0 && s.def[i].Join == v1alpha1.JoinAny)
	}
	s.ready.put(i, ready)
	s.unmeetable.put(i, unmeetable)
}

func (s *State) setEdge(c child, to edgeState) {
	t := &s.tasks[c.task]
	e := &t.edges[c.need]
	if e.state == to || e.expired {
		return
	}
	counts := t.edgeCounts(s.def[c.task].Needs[c.need])
	counts[e.state]--
	counts[to]++
	if e.state = to; to == edgeOpen { // the timeout of the edge starts again when the parent runs again
		e.expires = time.Time{}
	}
	s.evaluate(c.task)
}

// edgeStateOf returns the state of an edge for its parent t.
func edgeStateOf(on v1alpha1.On, t *taskState) edgeState {
	good := func(yes bool) edgeState {
		if yes {
			return edgeSatisfied
		}
		return edgeUnsatisfiable
	}
	switch {
	case !t.ended() || t.behind > 0:
		return edgeOpen
	case on == v1alpha1.OnCompletion:
		return edgeSatisfied
	case on == v1alpha1.OnFailure:
		return good(t.phase == taskFailed)
	default:
		return good(t.phase == taskSucceeded || t.phase == taskIgnored)
	}
}

// setPhase sets the phase of a task and updates everything derived from it: counts, edges, stages
// and clocks.
func (s *State) setPhase(i int, to taskPhase, verdict v1alpha1.Verdict, at time.Time) {
	t := &s.tasks[i]
	was := t.ended()
	s.phaseCounts[t.phase]--
	s.phaseCounts[to]++
	if t.verdict == v1alpha1.VerdictBlocking {
		s.blocking--
	}
	if verdict == v1alpha1.VerdictBlocking {
		s.blocking++
	}
	t.phase, t.verdict, t.endedAt = to, verdict, time.Time{}
	if isFinal(to) {
		t.endedAt = at
	}
	if t.awaitsDecision() {
		t.questions++
	}
	s.running.put(i, to == taskRunning)
	if to != taskRunning {
		s.lost.put(i, false)
	}
	stage := s.def[i].Stage
	switch is := t.ended(); {
	case is && !was:
		s.stageRemaining[stage]--
	case was && !is:
		s.stageRemaining[stage]++
		s.closeStages(stage)
	}
	if to != taskPaused {
		s.setAwaitingApproval(i, false, time.Time{})
	}
	if t.rerunning && t.ended() {
		s.setRerunning(i, false)
	}
	s.pauseClocks(i, to == taskPaused && !t.awaitingApproval, at)
	s.propagate(i)
	s.evaluate(i)
	if s.stageRemaining[s.stage] == 0 && s.stage < StagePost {
		s.openStages()
	}
}

func (t *taskState) awaitsDecision() bool {
	return t.phase == taskPaused || t.phase == taskInterrupted || t.phase == taskFailed && t.verdict == v1alpha1.VerdictBlocking
}

// ended reports whether the task has ended. A failure that blocks the run does not count, because
// the task runs again on resume.
func (t *taskState) ended() bool {
	return isFinal(t.phase) && t.verdict != v1alpha1.VerdictBlocking
}

// closeStages makes this stage the current one again, so that later stages wait for it.
func (s *State) closeStages(stage Stage) {
	if s.stage <= stage {
		return
	}
	s.stage = stage
	for i := range s.def {
		if s.def[i].Stage > stage {
			s.evaluate(i)
		}
	}
}

func (s *State) propagate(i int) {
	for _, c := range s.children[i] {
		s.setEdge(c, edgeStateOf(s.def[c.task].Needs[c.need].On, &s.tasks[i]))
	}
}

// startEdges starts the timeouts of a task's outgoing edges. Timeouts that are already running
// continue.
func (s *State) startEdges(i int, at time.Time) {
	for _, c := range s.children[i] {
		s.startEdge(c, at)
	}
}

func (s *State) startEdge(c child, at time.Time) {
	e := &s.tasks[c.task].edges[c.need]
	if d := s.def[c.task].Needs[c.need].Timeout; d > 0 && e.state == edgeOpen && e.expires.IsZero() {
		e.expires = s.clockTime(at).Add(time.Duration(d))
		s.addAlarm(e.expires, c.task, c.need)
	}
}

// renewEdges restarts the timeouts of a task's expired incoming edges.
func (s *State) renewEdges(i int, at time.Time) {
	for n := range s.tasks[i].edges {
		e := &s.tasks[i].edges[n]
		if !e.expired {
			continue
		}
		parent, c := &s.tasks[e.parent], child{i, n}
		e.expired = false
		s.setEdge(c, edgeStateOf(s.def[i].Needs[n].On, parent))
		s.setBehind(c, parent.isBehind())
		if !parent.startedAt.IsZero() && parent.phase != taskPending {
			s.startEdge(c, at)
		}
	}
}

// pauseClocks stops the timeouts of a task's outgoing edges when the task begins to wait for an
// operator, and restarts them when the wait ends.
func (s *State) pauseClocks(i int, pause bool, at time.Time) {
	t := &s.tasks[i]
	if pause {
		if t.pausedAt.IsZero() {
			t.pausedAt = s.clockTime(at) // makes the alarms of these edges stale
		}
		return
	}
	if t.pausedAt.IsZero() {
		return
	}
	stood := max(s.clockTime(at).Sub(t.pausedAt), 0)
	t.pausedAt = time.Time{}
	for _, c := range s.children[i] {
		if e := &s.tasks[c.task].edges[c.need]; e.state == edgeOpen && !e.expires.IsZero() {
			e.expires = e.expires.Add(stood)
			s.addAlarm(e.expires, c.task, c.need)
		}
	}
}

func (s *State) reopen(i int, at time.Time) {
	t := &s.tasks[i]
	if t.ended() {
		s.setRerunning(i, true)
	}
	t.failures, t.lost, t.recreate, t.pauseReason, t.message, t.planned, t.skipsChildren = 0, 0, t.recreate && t.phase != taskSucceeded, "", "", false, false
	t.totalAt = time.Time{}
	if t.undo != undoNone && !s.isRollingBack() {
		t.steps[t.undoStep].done = false // it is unknown how far the release got
		s.setUndo(i, undoNone)
	}
	t.step = s.firstStep(i)
	s.setPhase(i, taskPending, "", at)
	for _, c := range s.children[i] {
		if s.tasks[c.task].phase == taskSkipped {
			s.renewEdges(c.task, at)
			s.reopen(c.task, at)
		}
	}
}

// firstStep returns the first step that must be performed. If there is none, it returns the last
// step.
func (s *State) firstStep(i int) int {
	last := 0
	for n := range s.tasks[i].steps {
		if s.mustPerform(i, n) {
			return n
		}
		if !s.def[i].Steps[n].removed {
			last = n
		}
	}
	return last
}

// mustPerform reports whether a step has yet to be performed. This includes a step that succeeded
// but whose hold was released, completely or in part.
func (s *State) mustPerform(i, n int) bool {
	step := &s.tasks[i].steps[n]
	if s.def[i].Steps[n].removed {
		return false
	}
	return !step.done || s.def[i].Steps[n].Holds && step.started && step.undone
}

// nextStep returns the next step to perform, or -1 if there is none. It can be an earlier step that
// must be performed again.
func (s *State) nextStep(i int) int {
	for n := range s.tasks[i].steps {
		if n != s.tasks[i].step && s.mustPerform(i, n) {
			return n
		}
	}
	return -1
}

// skipReason returns why a task can never start. planned means that the graph intends the task to
// be skipped.
func (s *State) skipReason(i int) (reason string, planned bool) {
	t := &s.tasks[i]
	planned = true
	optional := t.required[edgeUnsatisfiable] == 0
	for n, e := range t.edges {
		need := s.def[i].Needs[n]
		if e.state != edgeUnsatisfiable || need.Optional != optional {
			continue
		}
		why, meant := s.edgeReason(need, &e)
		planned = planned && meant
		if reason == "" || optional {
			reason = why
		}
	}
	if optional {
		reason = "none of the branches that it joins has succeeded"
		if len(t.edges) == 1 {
			reason = fmt.Sprintf("the branch that it joins was not taken: %s", s.def[i].Needs[0].Task)
		}
	}
	return reason, planned
}

func (s *State) edgeReason(need Need, e *edge) (reason string, planned bool) {
	p := &s.tasks[e.parent]
	switch {
	case e.expired:
		return fmt.Sprintf("waited longer than %s for %s", view.Duration(time.Duration(need.Timeout)), need.Task), false
	case need.On == v1alpha1.OnFailure && p.phase == taskSkipped:
		return need.Task + " was skipped", p.planned
	case need.On == v1alpha1.OnFailure:
		return need.Task + " did not fail", true
	case p.phase == taskSkipped:
		return need.Task + " was skipped", p.planned
	default:
		return need.Task + " failed", !p.skipsChildren
	}
}

// setRerunning records that an ended task runs again, or that it has ended again. Between the two,
// no descendant starts, even if all tasks between them have ended.
func (s *State) setRerunning(i int, again bool) {
	t := &s.tasks[i]
	was := t.isBehind()
	t.rerunning = again
	if is := t.isBehind(); is != was {
		s.notifyDescendants(i, is)
	}
}

// isBehind reports whether the task or one of its ancestors is rerunning.
func (t *taskState) isBehind() bool { return t.rerunning || t.behind > 0 }

func (s *State) notifyDescendants(i int, behind bool) {
	for _, c := range s.children[i] {
		if !behind || !s.tasks[c.task].edges[c.need].expired {
			s.setBehind(c, behind)
		}
	}
}

func (s *State) setBehind(c child, behind bool) {
	t := &s.tasks[c.task]
	e := &t.edges[c.need]
	if e.behind == behind {
		return
	}
	was := t.isBehind()
	if e.behind = behind; behind {
		t.behind++
	} else {
		t.behind--
	}
	if is := t.isBehind(); is != was {
		s.notifyDescendants(c.task, is)
		s.propagate(c.task)
	}
}
