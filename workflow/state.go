package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

type taskPhase = v1alpha1.TaskPhase

const (
	taskPending     = v1alpha1.TaskPending
	taskRunning     = v1alpha1.TaskRunning
	taskRetrying    = v1alpha1.TaskRetrying
	taskSucceeded   = v1alpha1.TaskSucceeded
	taskFailed      = v1alpha1.TaskFailed
	taskIgnored     = v1alpha1.TaskIgnored
	taskSkipped     = v1alpha1.TaskSkipped
	taskPaused      = v1alpha1.TaskPaused
	taskInterrupted = v1alpha1.TaskInterrupted
)

// undoState is the state of a task's undo. It is separate from the phase, which keeps the result of
// the task.
type undoState uint8

const (
	undoNone    undoState = iota
	undoRunning           // until the next attempt
	undoWaiting           // for the time of the next attempt
	undoDue               // the next attempt or step can start
	undoDone
	undoKept   // there is no undo, so the effect stays
	undoFailed // waits for an operator
)

type edgeState uint8

const (
	edgeOpen edgeState = iota
	edgeSatisfied
	edgeUnsatisfiable
)

type edge struct {
	parent  int
	state   edgeState
	expired bool
	expires time.Time // zero if its timeout is not running
	behind  bool      // the parent or one of its ancestors is rerunning
}

func (e *edge) isExpired(now time.Time) bool {
	return e.state == edgeOpen && !e.expires.IsZero() && !e.expires.After(now)
}

type stepState struct {
	started, done      bool
	attempt            int
	firstAttempt       int  // the first attempt of the execution; 0 if the next attempt starts a new one
	undone             bool // by a rollback, or because its hold was released
	adopted            bool
	undo, output, with json.RawMessage
	partial            bool // the output is from a failed attempt
}

type taskState struct {
	phase         taskPhase
	verdict       v1alpha1.Verdict
	planned       bool // the graph intends the skip
	removed       bool // by a migration; it is kept only for a rollback
	skipsChildren bool // failed with IgnoreChildren
	rerunning     bool // it had ended, and runs again
	behind        int  // the number of incoming edges from tasks that are rerunning or behind
	pauseReason   PauseReason
	step          int // the current step
	failures      int // of the current step, as counted against its retries
	lost          int // consecutive attempts of the current step that were lost with their process
	attempts      int // of the task's own step
	recreate      bool
	message       string
	questions     int // how often the task began to wait for a decision; also the number of the current question

	startedAt, endedAt, retryFrom, retryAt, timeoutAt, totalAt, pausedAt time.Time

	awaitingApproval bool      // timeouts keep running while it waits
	expiresAt        time.Time // of the approval; zero means never

	steps []stepState
	edges []edge

	// Numbers of edges by state, so that evaluate takes constant time.
	required, optional [edgeUnsatisfiable + 1]int

	undo         undoState
	kept         bool // the undo of at least one step kept its effect
	undoStep     int  // the step that is being undone
	undoAttempts int
	unsettled    int // children that a rollback has yet to settle
	settled      bool
}

// attempt returns the number of the latest attempt at the current step. A resume does not reset it.
func (t *taskState) attempt() int { return t.steps[t.step].attempt }

// child is an edge as stored at its parent.
type child struct{ task, need int }

// handling is one call of a failure handler.
type handling struct {
	handler int
	task    string
	cause   Cause
	message string
	attempt int // of the failed task
	number  int // counts all calls of handlers in the run, from 1
	running bool
	lost    int // how often the process died during this call
}

type stop struct {
	rollback     bool
	task         string
	cause        Cause
	message      string
	undoPrepared bool
}

// State is the state of a run after all events that were applied. The zero value is a run without
// events.
type State struct {
	Header
	Hash     string
	Origin   string // see Started
	Holder   string
	Stranded string

	def      []Task
	byName   map[string]int
	children [][]child
	tasks    []taskState
	// There is one clock for each kind of alarm, because attempts, undos and approvals may wait while
	// edges time out.
	clocks   [4]clock
	deadline time.Time

	parts          []Task // of a definition whose parts are incomplete
	nextPart       int
	remainingParts int

	startedAt, claimedAt, endedAt, lastAt time.Time

	paused       bool
	pausedReason string
	pausedAt     time.Time
	verify       bool
	stopping     *stop
	ended        *Ended
	firstError   string

	releases       map[int][]release // by the task whose hold is released
	stage          Stage
	stageRemaining [3]int
	ready          set // may start
	unmeetable     set // can never start
	running        set // an attempt is in flight
	lost           set // an attempt was in flight when the process died
	undoable       set // an undo can start or continue
	undoing        set // an undo is in flight
	undoRemaining  int // tasks that a rollback has yet to settle
	undoStage      [3]int
	removedOrder   order // undo order from the graphs of earlier definitions
	outputs        bool  // some task has recorded an output
	holding        set   // tasks with a started step that holds something
	handlers       []handling
	handlerRuns    int // number of handler calls so far
	handling       int // handlers in flight
	blocking       int // failures that end the run
	approvals      int // tasks that wait for an approval
	phaseCounts    map[taskPhase]int
	undoCounts     [undoFailed + 1]int // numbers of tasks by undo state; the number for undoNone is only relative
}

// IsDefined reports whether the log contains the run's whole definition.
func (s *State) IsDefined() bool { return s.Hash != "" }

// Stopping reports whether the run is being aborted or rolled back, or is Aborted.
func (s *State) Stopping() bool { return s.stopping != nil }

// Finished reports whether the run has ended and cannot be resumed.
func (s *State) Finished() bool { return s.ended != nil && s.ended.Phase != v1alpha1.RunAborted }

// Tasks returns the number of tasks.
func (s *State) Tasks() int { return len(s.def) }

// Definition returns the current definition.
func (s *State) Definition() *Definition { return &Definition{Header: s.Header, Tasks: s.def} }

func (s *State) inFlight() int {
	return s.running.n + s.undoing.n + s.handling
}

func (s *State) index(name string) (int, bool) {
	i, ok := s.byName[name]
	return i, ok
}

// stepIndex returns the index of a step. For an unknown name it returns the task's own step, whose
// name is "".
func (s *State) stepIndex(i int, name string) int {
	if n := stepNamed(s.def[i].Steps, name); n >= 0 {
		return n
	}
	return s.def[i].OwnStep()
}

func isFinal(p taskPhase) bool {
	switch p {
	case taskSucceeded, taskFailed, taskIgnored, taskSkipped:
		return true
	default:
		return false
	}
}
