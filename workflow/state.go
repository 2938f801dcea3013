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

// undoState is the progress of the undo of a task. It is separate from the phase, which is the result of the task.
type undoState uint8

const (
	undoNone    undoState = iota
	undoRunning           // an attempt is in flight
	undoWaiting           // for the next attempt
	undoDue               // the next attempt or step can start
	undoDone
	undoKept   // there is no undo: the effect is kept
	undoFailed // waits for an operator
)

type edgeState uint8

const (
	edgeOpen          edgeState = iota
	edgeSatisfied               // satisfied
	edgeUnsatisfiable           // can no longer be satisfied
)

// edge is a need of a task.
type edge struct {
	parent  int
	state   edgeState
	expired bool
	expires time.Time // zero: not running
	behind  bool      // the parent or one of its ancestors runs again
}

// isExpired reports whether an open edge has timed out.
func (e *edge) isExpired(now time.Time) bool {
	return e.state == edgeOpen && !e.expires.IsZero() && !e.expires.After(now)
}

type stepState struct {
	started, done      bool
	attempt            int
	firstAttempt       int  // the first attempt of the execution; 0 if the next attempt starts one
	undone             bool // by a rollback, or released
	adopted            bool
	undo, output, with json.RawMessage
	partial            bool // the output is from a failed attempt
}

type taskState struct {
	phase         taskPhase
	verdict       v1alpha1.Verdict
	planned       bool // skipped as the graph plans
	removed       bool // by a migration: it exists for a rollback only
	skipsChildren bool // failed with IgnoreChildren
	rerunning     bool // it had ended, and runs again
	behind        int  // the number of edges to tasks that run again or are behind such tasks
	pauseReason   PauseReason
	step          int // the current step
	failures      int // of the current step, as far as they count against its retries
	lost          int // attempts of the current step that were lost with their process, in a row
	attempts      int // of the task's own step
	recreate      bool
	message       string
	questions     int // times that it began to wait for a decision; the number of the question that it asks now

	startedAt, endedAt, retryFrom, retryAt, timeoutAt, totalAt, pausedAt time.Time

	awaitingApproval bool      // for an approval, while the clocks continue
	expiresAt        time.Time // of the approval; zero if never

	steps []stepState
	edges []edge

	// The numbers of edges, by state, so that readiness need not be computed.
	required, optional [edgeUnsatisfiable + 1]int

	undo         undoState
	kept         bool // by the undo of at least one of its steps
	undoStep     int  // the step that is being undone
	undoAttempts int
	unsettled    int // children that a rollback has not settled
	settled      bool
}

// attempt returns the number of the latest attempt at the current step. A resume does not reset it.
func (t *taskState) attempt() int { return t.steps[t.step].attempt }

// child is an edge from the point of view of its parent.
type child struct{ task, need int }

// handling is a run of a failure handler.
type handling struct {
	handler int
	task    string
	cause   Cause
	message string
	attempt int // of the task that failed
	number  int // the number of this run of a handler for the same task, from 1
	running bool
	lost    int // times that its process ended
}

// stop is the verdict on the run.
type stop struct {
	rollback     bool
	task         string
	cause        Cause
	message      string
	undoPrepared bool
}

// State is the state of a run, the result of its events. The zero value is a run without events.
type State struct {
	Header
	Hash     string
	Origin   string // a part of the keys of a local run; see Started
	Holder   string
	Stranded string

	def      []Task
	byName   map[string]int
	children [][]child
	tasks    []taskState
	// Alarms of edges, of attempts, of undos and of approvals. They are separate because attempts
	// may have to wait for a free slot, and edges time out nevertheless.
	clocks   [4]clock
	deadline time.Time

	parts          []Task // of a definition whose parts are not complete
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

	releases       map[int][]release // by the tasks whose hold they release
	stage          Stage
	stageRemaining [3]int
	ready          set // may start
	unmeetable     set // can never start
	running        set // an attempt is in flight
	lost           set // their process has ended
	undoable       set // an undo can start or continue
	undoing        set // an undo is in flight
	undoRemaining  int // tasks that a rollback has not settled
	undoStage      [3]int
	removedOrder   order // the order of undos from the graph of an earlier definition
	outputs        bool  // some task has recorded an output
	holding        set   // started steps that hold something
	handlers       []handling
	handlerRuns    int // of handlers, running, waiting or over
	handling       int // handlers that are running
	blocking       int // the number of failures that end the run
	approvals      int // tasks that ask for an approval
	phaseCounts    map[taskPhase]int
	undoCounts     [undoFailed + 1]int // of tasks, by state; that of undoNone is only relative
}

// IsDefined reports whether the run exists in the log, with its whole definition.
func (s *State) IsDefined() bool { return s.Hash != "" }

// Stopping reports whether the run is being aborted or rolled back, or is Aborted.
func (s *State) Stopping() bool { return s.stopping != nil }

// Finished reports whether the run has ended and cannot be resumed.
func (s *State) Finished() bool { return s.ended != nil && s.ended.Phase != v1alpha1.RunAborted }

// Tasks returns the number of tasks.
func (s *State) Tasks() int { return len(s.def) }

// Definition returns the current definition.
func (s *State) Definition() *Definition { return &Definition{Header: s.Header, Tasks: s.def} }

// inFlight returns the number of effects in flight.
func (s *State) inFlight() int {
	return s.running.n + s.undoing.n + s.handling
}

// index returns a task by its name.
func (s *State) index(name string) (int, bool) {
	i, ok := s.byName[name]
	return i, ok
}

// stepIndex returns a step of a task by its name, which is "" for the task's own step.
func (s *State) stepIndex(i int, name string) int {
	for n := range s.def[i].Steps {
		if s.def[i].Steps[n].Name == name {
			return n
		}
	}
	return s.def[i].OwnStep()
}

// isFinal reports whether a phase is final.
func isFinal(p taskPhase) bool {
	switch p {
	case taskSucceeded, taskFailed, taskIgnored, taskSkipped:
		return true
	default:
		return false
	}
}
