package workflow

import (
	"encoding/json"
	"time"

	"scute.dev/api/v1alpha1"
)

// taskPhase is where a task is between events.
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

// undoState is how far the undo of a task has come. It is kept beside the phase, which says how the task had gone.
type undoState uint8

const (
	undoNone    undoState = iota
	undoRunning           // an attempt is in flight
	undoWaiting           // for the next attempt
	undoDue               // the next attempt or step can start
	undoDone
	undoKept   // nothing says how to undo it: it is left as it is
	undoFailed // waits for an operator
)

type edgeState uint8

const (
	edgeOpen edgeState = iota
	edgeGood           // satisfied
	edgeBad            // can no longer be satisfied
)

// edge is a need of a task.
type edge struct {
	parent  int
	state   edgeState
	expired bool
	expires time.Time // zero: not running
	behind  bool      // the parent runs again, or something above it does
}

// late says that an edge is still open although its time is up.
func (e *edge) late(now time.Time) bool {
	return e.state == edgeOpen && !e.expires.IsZero() && !e.expires.After(now)
}

// stepState is what is known of one step.
type stepState struct {
	started, done      bool
	attempt            int
	since              int  // the attempt that the execution began with; 0 when the next attempt begins one
	undone             bool // by a rollback, or given back
	adopted            bool
	undo, output, with json.RawMessage
	partial            bool // the output is of an attempt that failed
}

// taskState is what is known of one task.
type taskState struct {
	phase    taskPhase
	verdict  Verdict
	planned  bool // skipped as the graph meant it
	removed  bool // by a migration: it is there for a rollback's sake
	children bool // failed with IgnoreChildren
	again    bool // it had ended, and runs again
	behind   int  // edges to tasks that run again, or that are themselves behind one
	why      Why
	step     int // the current one
	failures int // of the current step, those that count against its retries
	lost     int // attempts of the current step that were lost with their process, in a row
	attempts int // of the task's own step
	recreate bool
	message  string
	asked    int // times that it began to wait for a decision; the number of the question that it asks now

	startedAt, endedAt, retryFrom, retryAt, timeoutAt, totalAt, pausedAt time.Time

	asking    bool      // for an approval, while the clocks continue
	expiresAt time.Time // of the approval; zero if never

	steps []stepState
	edges []edge

	// Counts of the edges, so that readiness costs nothing to know.
	openRequired, badRequired, openOptional, goodOptional, optional int

	undo         undoState
	kept         bool // by the undo of one of its steps at least
	undoStep     int  // that is being taken back
	undoAttempts int
	unsettled    int // children that a rollback has not settled
	settled      bool
}

// attempt is the latest of the current step; it counts on over resumes.
func (t *taskState) attempt() int { return t.steps[t.step].attempt }

// child is an edge seen from its parent.
type child struct{ task, need int }

// handling is one run of a handler of the error channel.
type handling struct {
	handler int
	task    string
	cause   Cause
	message string
	attempt int // of the task that failed
	number  int // of this run of a handler, from 1 on: what tells it from others for the same task
	running bool
	lost    int // times that its process ended
}

// stop is the verdict on the run as a whole.
type stop struct {
	rollback      bool
	task          string
	cause         Cause
	message       string
	undoGraphMade bool
}

// State is a run, folded from its events. The zero value is a run that the log does not know.
type State struct {
	Header
	Hash     string
	Keys     int    // the form of the idempotency keys; see Started
	Origin   string // a part of the keys of a local run; see Started
	Holder   string
	Stranded string

	def    []Task
	byName map[string]int
	kids   [][]child
	tasks  []taskState
	// Alarms of edges, of attempts, of undos and of approvals: a full house keeps attempts waiting, but no edge from running
	// out of time.
	clock, retryClock, undoClock, expiryClock clock
	deadline                                  time.Time

	parts     []Task // of a definition that is still coming in
	nextPart  int
	partsLeft int

	startedAt, claimedAt, endedAt, lastAt time.Time

	paused       bool
	pausedReason string
	pausedAt     time.Time
	verify       bool
	stopping     *stop
	ended        *Ended
	firstError   string

	releases    map[int][]release // by the tasks whose hold they end
	stage       Stage
	stageLeft   [3]int
	ready       set // may start
	unmeetable  set // can never start
	running     set // an attempt is in flight
	lost        set // their process is gone
	undoable    set // an undo can start or continue
	undoing     set // an undo is in flight
	undoLeft    int // tasks that a rollback has not settled
	undoStage   [3]int
	removed     order // what the graph of an earlier definition says of the order of undos
	outputs     bool  // some task has recorded an output
	holding     set   // started steps that hold something
	handlers    []handling
	calls       int // of handlers, running, waiting or over
	handling    int // handlers that are running
	blocking    int // failures that end the run
	asking      int // tasks that ask for an approval
	count       map[taskPhase]int
	undoneN     int
	undoFailedN int
}

// Known says that the run is in the log, with its whole definition.
func (s *State) Known() bool { return s.Hash != "" }

// Stopping reports whether the run is being aborted or rolled back, or is Aborted.
func (s *State) Stopping() bool { return s.stopping != nil }

// Finished says that the run has ended and cannot be resumed.
func (s *State) Finished() bool { return s.ended != nil && s.ended.Phase != v1alpha1.RunAborted }

// Tasks is the number of tasks.
func (s *State) Tasks() int { return len(s.def) }

// Definition is the definition that the run continues with.
func (s *State) Definition() *Definition { return &Definition{Header: s.Header, Tasks: s.def} }

// inFlight is the number of effects that are being performed.
func (s *State) inFlight() int {
	return s.running.n + s.undoing.n + s.handling
}

// index finds a task by its name.
func (s *State) index(name string) (int, bool) {
	i, ok := s.byName[name]
	return i, ok
}

// stepIndex finds a step of a task by its name; the task's own step has none.
func (s *State) stepIndex(i int, name string) int {
	for n := range s.def[i].Steps {
		if s.def[i].Steps[n].Name == name {
			return n
		}
	}
	return s.def[i].Own()
}

// terminal says that nothing more happens to a task by itself.
func terminal(p taskPhase) bool {
	switch p {
	case taskSucceeded, taskFailed, taskIgnored, taskSkipped:
		return true
	default:
		return false
	}
}
