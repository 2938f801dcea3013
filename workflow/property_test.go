package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"scute.dev/api/v1alpha1"
)

// TestAnyRun plays random runs of random graphs: attempts succeed, fail and ask, processes crash between two commits
// and are replaced, users give any command, and time passes. It checks invariants, and compares each step with the
// oracle.
func TestAnyRun(t *testing.T) {
	ends := make(map[v1alpha1.RunPhase]int)
	all := []v1alpha1.RunPhase{
		v1alpha1.RunSucceeded, v1alpha1.RunDegraded, v1alpha1.RunAborted, v1alpha1.RunRolledBack, v1alpha1.RunRollbackFailed, v1alpha1.RunPaused,
	}
	missing := func(end v1alpha1.RunPhase) bool { return ends[end] == 0 }
	for rounds := 0; rounds < 5 && slices.ContainsFunc(all, missing) && !t.Failed(); rounds++ {
		rapid.Check(t, anyRun(ends))
	}
	if i := slices.IndexFunc(all, missing); i >= 0 {
		t.Errorf("no run ended %s, so the runs are not varied enough (%v)", all[i], ends)
	}
}

// anyRun plays one run until nothing more happens.
func anyRun(ends map[v1alpha1.RunPhase]int) func(*rapid.T) {
	return func(t *rapid.T) {
		d := anyDefinition(t)
		p := &player{
			t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), oracle: newOracle(d), inFlight: make(map[EffectID]Effect),
			parallel: rapid.IntRange(1, 4).Draw(t, "parallel"),
		}
		p.store(Start(d, "", p.now)...)
		p.claim()
		for range rapid.IntRange(0, 60).Draw(t, "turns") {
			p.step()
		}
		p.drain()
		ends[CurrentPhase(&p.state)]++
	}
}

// anyDefinition draws a valid graph of up to ten tasks.
func anyDefinition(t *rapid.T) *Definition {
	d := &Definition{Header: Header{Name: "any", Policy: anyPolicy(t)}}
	if rapid.IntRange(0, 4).Draw(t, "deadline") == 0 {
		d.Deadline = Duration(10 * time.Minute)
	}
	for h := range rapid.IntRange(0, 2).Draw(t, "handlers") {
		d.OnFailure = append(d.OnFailure, Step{Name: fmt.Sprintf("onFailure/%d", h), Kind: "K"})
	}
	stages := []Stage{StageMain}
	if rapid.IntRange(0, 2).Draw(t, "stages") == 0 {
		stages = []Stage{StagePre, StageMain, StagePost}
	}
	seldom := func(label string) bool { return rapid.IntRange(0, 7).Draw(t, label) == 0 }
	for i := range rapid.IntRange(1, 10).Draw(t, "tasks") {
		task := Task{
			Name: fmt.Sprintf("t%d", i), Stage: rapid.SampledFrom(stages).Draw(t, "stage"), Policy: d.Policy, PolicySource: "workflow",
			Always: seldom("always"), PointOfNoReturn: seldom("point"),
		}
		if rapid.Bool().Draw(t, "own policy") {
			task.Policy, task.PolicySource = anyPolicy(t), "task"
		}
		if !task.Always {
			task.AtMostOnce = seldom("once")
		}
		if seldom("join") {
			task.Join = v1alpha1.JoinAny
		}
		if seldom("before") {
			task.Steps = append(task.Steps, anyStep(t, "before/x"))
		}
		task.Steps = append(task.Steps, anyStep(t, ""))
		if seldom("after") {
			task.Steps = append(task.Steps, anyStep(t, "after/x"))
		}
		for j := range d.Tasks {
			if d.Tasks[j].Stage == task.Stage && rapid.IntRange(0, 2).Draw(t, "need") == 0 {
				need := Need{
					Task: d.Tasks[j].Name, Optional: rapid.IntRange(0, 2).Draw(t, "optional") == 0,
					On: rapid.SampledFrom([]v1alpha1.On{v1alpha1.OnSuccess, v1alpha1.OnSuccess, v1alpha1.OnFailure, v1alpha1.OnCompletion}).Draw(t, "on"),
				}
				if seldom("edge timeout") {
					need.Timeout = Duration(time.Minute)
				}
				task.Needs = append(task.Needs, need)
			}
		}
		anyRelease(t, d, &task)
		d.Tasks = append(d.Tasks, task)
	}
	return d
}

func anyPolicy(t *rapid.T) v1alpha1.FailurePolicy {
	return rapid.SampledFrom([]v1alpha1.FailurePolicy{v1alpha1.Abort, v1alpha1.Rollback, v1alpha1.Ignore, v1alpha1.IgnoreChildren, v1alpha1.FailurePause}).Draw(t, "policy")
}

// anyRelease may let a task release the hold of an earlier one.
func anyRelease(t *rapid.T, d *Definition, task *Task) {
	above := make(map[string]bool)
	for _, need := range task.Needs {
		above[need.Task] = true
	}
	var holds []string
	for _, other := range slices.Backward(d.Tasks) {
		if !above[other.Name] {
			continue
		}
		for _, need := range other.Needs {
			above[need.Task] = true
		}
		if other.Steps[other.OwnStep()].Holds {
			holds = append(holds, other.Name)
		}
	}
	step := &task.Steps[rapid.IntRange(0, len(task.Steps)-1).Draw(t, "releasing step")]
	if len(holds) > 0 && !step.Holds && rapid.Bool().Draw(t, "releases") {
		step.Releases = rapid.SampledFrom(holds).Draw(t, "released")
	}
}

func anyStep(t *rapid.T, name string) Step {
	s := Step{Name: name, Kind: "K", Holds: rapid.IntRange(0, 3).Draw(t, "holds") == 0}
	if rapid.Bool().Draw(t, "retries") {
		s.Retry = Retry{Max: rapid.IntRange(1, 2).Draw(t, "max"), Delay: Duration(20 * time.Second), Factor: 2, MaxDelay: Duration(time.Minute), Recreate: rapid.Bool().Draw(t, "recreate")}
	}
	if rapid.IntRange(0, 3).Draw(t, "total") == 0 {
		s.TotalTimeout = Duration(time.Minute)
	}
	if rapid.IntRange(0, 5).Draw(t, "no undo") == 0 {
		s.Undo = &Undo{None: true}
	}
	return s
}

type player struct {
	t        *rapid.T
	now      time.Time
	parallel int
	state    State
	twin     State // applies the events as the log returns them
	chain    Chain
	oracle   *oracle
	inFlight map[EffectID]Effect
	holders  int
	handlers int // started by the same process, or started again
	calm     bool
	history  []string
}

func (p *player) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(p.history, "\n"))
}

// store applies events to the state and, decoded from their stored form, to its twin, and checks the invariants.
func (p *player) store(events ...Event) {
	catalog := NewCatalog()
	for _, e := range events {
		p.history = append(p.history, fmt.Sprintf("%s %T%+v", p.now.Format("15:04:05"), e, e))
		if _, ok := e.(HandlerStarted); ok {
			p.handlers++
		}
		stored, err := catalog.Encode(e)
		if err != nil {
			p.fail("%v", err)
		}
		again, err := catalog.Decode(stored)
		if err != nil {
			p.fail("%v", err)
		}
		if !reflect.DeepEqual(e, again) {
			p.fail("the log gives back another event: %s", cmp.Diff(e, again))
		}
		if wrong := p.chain.Check(&p.state, e); wrong != "" {
			p.fail("%s", wrong)
		}
		p.state.Apply(e, p.now)
		p.twin.Apply(again, p.now)
		if wrong := p.oracle.check(e); wrong != "" {
			p.fail("%s: %s", e.task(), wrong)
		}
		p.checkReplay()
		if p.state.IsDefined() {
			p.checkInvariants()
		}
	}
}

func (p *player) checkReplay() {
	if !reflect.DeepEqual(&p.state, &p.twin) {
		p.fail("a replay gives another state")
	}
}

// checkInvariants compares the engine's counters and sets with what the oracle derives.
func (p *player) checkInvariants() {
	s, o := &p.state, p.oracle
	count, left, undone, broken := make(map[taskPhase]int), [3]int{}, 0, 0
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.phase != o.tasks[i].phase || t.verdict != o.tasks[i].verdict {
			p.fail("%s is %s %s, the oracle says %s %s", s.def[i].Name, t.phase, t.verdict, o.tasks[i].phase, o.tasks[i].verdict)
		}
		ready, unmeetable := o.ready(i)
		if s.ready.has(i) != ready || s.unmeetable.has(i) != unmeetable {
			p.fail("%s: ready %t, unmeetable %t; the oracle says %t, %t", s.def[i].Name, s.ready.has(i), s.unmeetable.has(i), ready, unmeetable)
		}
		for n := range t.edges {
			if got, want := []string{"open", "met", "lost"}[t.edges[n].state], o.edge(i, n); got != want {
				p.fail("%s: edge %d is %s, the oracle says %s", s.def[i].Name, n, got, want)
			}
		}
		for n := range t.steps {
			if got := t.steps[n]; got.started != o.tasks[i].steps[n].started || got.undone != o.tasks[i].steps[n].undone {
				p.fail("%s: step %d is %+v, the oracle says %+v", s.def[i].Name, n, got, o.tasks[i].steps[n])
			}
		}
		if got := s.holding.has(i); got != (s.heldStep(i) >= 0) {
			p.fail("%s: holding %t", s.def[i].Name, got)
		}
		count[t.phase]++
		if !o.isFinal(i) {
			left[s.def[i].Stage]++
		}
		switch t.undo {
		case undoDone:
			undone++
		case undoFailed:
			broken++
		}
		if s.running.has(i) != (t.phase == taskRunning) || s.undoing.has(i) != (t.undo == undoRunning) || s.undoable.has(i) != (t.undo == undoDue) {
			p.fail("%s: the sets are not what the task says", s.def[i].Name)
		}
	}
	for phase, n := range s.phaseCounts {
		if count[phase] != n {
			p.fail("%d tasks are %s, counted %d", count[phase], phase, n)
		}
	}
	if left != s.stageRemaining || undone != s.undoCounts[undoDone] || broken != s.undoCounts[undoFailed] {
		p.fail("left %v, undone %d, failed to be undone %d; counted %v, %d, %d", left, undone, broken, s.stageRemaining, s.undoCounts[undoDone], s.undoCounts[undoFailed])
	}
	if s.inFlight() > p.parallel {
		p.fail("%d effects in flight, %d are allowed", s.inFlight(), p.parallel)
	}
	_, _ = Explain(s)
	_ = Status(s)
}

// decide calls Decide twice and checks that the results are equal and the state is unchanged.
func (p *player) decide(in Input) []Event {
	events, err := Decide(&p.state, in, p.now)
	again, errAgain := Decide(&p.state, in, p.now)
	if !reflect.DeepEqual(events, again) || (err == nil) != (errAgain == nil) {
		p.fail("Decide is not deterministic for %T%+v: %v, then %v", in, in, events, again)
	}
	p.checkReplay()
	if err != nil && len(events) > 0 {
		p.fail("refused with events: %v", err)
	}
	return events
}

// send decides on an input, and on everything that follows. The process may crash with only some of the events stored.
func (p *player) send(in Input) {
	p.history = append(p.history, fmt.Sprintf("%s < %T%+v", p.now.Format("15:04:05"), in, in))
	events := p.decide(in)
	for rounds := 0; ; rounds++ {
		if !p.calm && len(events) > 0 && rapid.IntRange(0, 60).Draw(p.t, "death") == 0 {
			p.store(events[:rapid.IntRange(0, len(events)).Draw(p.t, "stored")]...)
			p.history = append(p.history, "death")
			p.claim()
			return
		}
		p.store(events...)
		if rounds > 1000 {
			p.fail("no end of decisions")
		}
		if events = p.decide(Tick{Parallel: p.parallel}); len(events) == 0 {
			break
		}
	}
	p.startEffects()
}

// claim starts a new process.
func (p *player) claim() {
	p.holders++
	clear(p.inFlight)
	p.store(Claimed{Holder: fmt.Sprint(p.holders)})
	p.send(Tick{Parallel: p.parallel})
}

func (p *player) startEffects() {
	for _, e := range Effects(&p.state) {
		if e.Kind == EffectAct {
			if step := p.oracle.step(e.Task, e.Step); step.done && !step.undone {
				p.fail("an effect that is done: %+v", e.EffectID)
			}
		}
		p.inFlight[e.EffectID] = e
	}
}

func (p *player) step() {
	flying := slices.SortedFunc(maps.Keys(p.inFlight), func(a, b EffectID) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	switch what := rapid.IntRange(0, 19).Draw(p.t, "turn"); {
	case what < 11 && len(flying) > 0:
		p.finish(rapid.SampledFrom(flying).Draw(p.t, "effect"))
	case what < 14:
		p.advance()
	case what == 14:
		p.history = append(p.history, "death")
		p.claim()
	default:
		p.send(p.command())
	}
}

func (p *player) advance() {
	p.now = p.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(p.t, "seconds")) * time.Second)
	if at := NextAt(&p.state); at.After(p.now) && rapid.Bool().Draw(p.t, "until due") {
		p.now = at
	}
	p.send(Tick{Parallel: p.parallel})
}

// finish ends an effect. An effect that the run has cancelled may still succeed.
func (p *player) finish(id EffectID) {
	delete(p.inFlight, id)
	wanted := slices.ContainsFunc(Effects(&p.state), func(e Effect) bool { return e.EffectID == id })
	dice := rapid.IntRange(0, 9).Draw(p.t, "outcome")
	if p.calm {
		dice = min(dice, 6)
	}
	switch id.Kind {
	case EffectAct:
		switch {
		case !wanted && dice < 8:
			p.send(ActFailed{Task: id.Task, Step: id.Step, Attempt: id.Attempt, Cause: CauseCancelled})
		case dice < 5:
			if rapid.IntRange(0, 4).Draw(p.t, "records") == 0 {
				p.send(ActRecorded{Task: id.Task, Step: id.Step, Attempt: id.Attempt, Undo: json.RawMessage(`{"a":1}`), Adopted: rapid.Bool().Draw(p.t, "adopted")})
			}
			p.send(ActDone{Task: id.Task, Step: id.Step, Attempt: id.Attempt, Output: json.RawMessage(`{"b":2}`)})
		case dice < 9:
			p.send(ActFailed{Task: id.Task, Step: id.Step, Attempt: id.Attempt, Cause: CauseError, Message: "broken", Final: dice == 5})
		default:
			p.send(ActAwaitsOperator{Task: id.Task, Step: id.Step, Attempt: id.Attempt, Message: "well?"})
		}
	case EffectUndo:
		if dice < 6 {
			p.send(UndoDone{Task: id.Task, Step: id.Step})
		} else {
			p.send(UndoErrored{Task: id.Task, Step: id.Step, Message: "stuck", Final: dice > 7})
		}
	case EffectHandle:
		p.send(HandlerDone{Handler: id.Step, Task: id.Task, Error: "it does not help"})
	case EffectVerify:
		var gone []Gone
		for i := range p.state.def {
			if rapid.IntRange(0, 9).Draw(p.t, "gone") == 0 {
				gone = append(gone, Gone{Task: p.state.def[i].Name, Reason: "gone"})
			}
		}
		p.send(VerifyDone{Gone: gone})
	}
}

func (p *player) command() Input {
	task := rapid.SampledFrom(p.state.def).Draw(p.t, "task").Name
	switch rapid.IntRange(0, 9).Draw(p.t, "word") {
	case 0:
		return PauseRun{Reason: "wait"}
	case 1, 2:
		return ResumeRun{Reason: "on"}
	case 3:
		return ResumeRun{Reason: "on", ProcessDied: len(p.inFlight) == 0}
	case 4:
		return HoldTask{Task: task}
	case 5:
		return ReleaseTask{Task: task}
	case 6:
		if rapid.IntRange(0, 3).Draw(p.t, "abort") == 0 {
			return AbortRun{}
		}
		fallthrough
	default:
		if waiting := p.state.waitingTasks(); len(waiting) > 0 {
			task = rapid.SampledFrom(waiting).Draw(p.t, "waiting")
		}
		return Decision{Task: task, Action: rapid.SampledFrom([]Action{
			ActRetry, ActIgnore, ActIgnoreChildren, ActSucceed, ActRollback, ActAbort, ActRetryUndo, ActMarkUndone, ActAbandon,
		}).Draw(p.t, "action")}
	}
}

// drain continues a run as far as possible without a user, and checks its final state.
func (p *player) drain() {
	p.calm = true
	for rounds := 0; Due(&p.state, p.now) || len(p.inFlight) > 0; rounds++ {
		if rounds > 3000 {
			p.fail("no end")
		}
		if len(p.inFlight) > 0 {
			p.finish(slices.MinFunc(slices.Collect(maps.Keys(p.inFlight)), func(a, b EffectID) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }))
			continue
		}
		at := NextAt(&p.state)
		if at.IsZero() {
			p.fail("it is due, %s, and nothing will happen", CurrentPhase(&p.state))
		}
		if at.After(p.now) {
			p.now = at
		}
		before := len(p.history)
		p.send(Tick{Parallel: p.parallel})
		if len(p.history) == before+1 && !NextAt(&p.state).After(p.now) && len(p.inFlight) == 0 {
			p.fail("a busy loop: it is due now, and nothing follows")
		}
	}
	p.checkIdle()
}

// checkIdle checks that each task is terminal or waits for a user, and that no task waits for an
// edge that can no longer be met.
func (p *player) checkIdle() {
	s := &p.state
	if events := p.decide(Tick{Parallel: p.parallel}); len(events) > 0 {
		p.fail("at rest, and yet there follows %v", events)
	}
	switch phase := CurrentPhase(s); phase {
	case v1alpha1.RunPaused:
		if !s.paused && len(s.waitingTasks()) == 0 {
			p.fail("paused, and nobody is waited for")
		}
		for i := range s.def {
			if s.ready.has(i) && !s.paused || s.unmeetable.has(i) && !s.paused {
				p.fail("%s could go on", s.def[i].Name)
			}
			if ph := s.tasks[i].phase; ph == taskRunning || ph == taskInterrupted || ph == taskRetrying && !s.paused {
				p.fail("%s is %s in a run that rests", s.def[i].Name, ph)
			}
		}
	case v1alpha1.RunRollbackFailed:
		if s.undoCounts[undoFailed] == 0 {
			p.fail("nothing failed to be undone")
		}
	case v1alpha1.RunSucceeded, v1alpha1.RunDegraded, v1alpha1.RunAborted, v1alpha1.RunRolledBack, v1alpha1.RunFailed:
		if s.ended == nil {
			p.fail("%s without an end", phase)
		}
		if phase != v1alpha1.RunFailed && p.handlers < p.oracle.handlers*len(s.OnFailure) {
			p.fail("%d handlers have run for %d failures", p.handlers, p.oracle.handlers)
		}
	default:
		p.fail("it rests and is %s", phase)
	}
}
