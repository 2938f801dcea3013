package workflow

import "encoding/json"

// Input is what a decision is taken on: the time, the result of an effect, or an operator's command.
type Input interface{ input() }

// Inputs from the driver of a run. An outcome that is not about an effect in progress is passed over.
type (
	// Tick asks what follows by itself. Parallel bounds the effects in flight.
	Tick struct{ Parallel int }
	// ActDone: an attempt at a step succeeded.
	ActDone struct {
		Task, Step string
		Attempt    int
		Output     json.RawMessage
	}
	// ActFailed: an attempt failed. Final: another one would fail too.
	ActFailed struct {
		Task, Step string
		Attempt    int
		Cause      Cause
		Message    string
		Final      bool
		// Output that the attempt recorded before it failed.
		Output json.RawMessage
	}
	// ActAsks: an operator has to decide what follows for the step.
	ActAsks struct {
		Task, Step string
		Attempt    int
		Message    string
	}
	// ActRecords: an attempt is going to change something.
	ActRecords struct {
		Task, Step string
		Attempt    int
		Undo       json.RawMessage
		Adopted    bool
	}
	// ActSays: an attempt waits for something.
	ActSays struct {
		Task, Step string
		Attempt    int
		Message    string
	}
	// UndoDone: a step is taken back. Kept says why what it did is left instead.
	UndoDone struct {
		Task, Step string
		Kept       string
	}
	// UndoBroke: an attempt to take a step back failed.
	UndoBroke struct {
		Task, Step string
		Attempt    int
		Message    string
		Final      bool
	}
	// HandlerDone: a handler has run. Error is the result.
	HandlerDone struct {
		Handler, Task string
		Error         string
		Output        json.RawMessage
	}
	// VerifyDone: what had succeeded was looked at again.
	VerifyDone struct{ Gone []Gone }
)

// Commands from an operator. One that does not fit is refused with an error that says what would.
type (
	// PauseRun starts nothing more.
	PauseRun struct{ Reason string }
	// ResumeRun continues with a paused or aborted run. Dead says that the process that drove it has died, so that a run
	// that still looks alive is resumed as well.
	ResumeRun struct {
		Reason string
		Dead   bool
	}
	// AbortRun ends a run that has not ended: what is in flight is cancelled, what is held is given back. It can be
	// resumed. A run that ends already is left to it. With Rollback what the run did is undone as well, also after an abort.
	AbortRun struct {
		Reason   string
		Rollback bool
	}
	// HoldTask keeps a task, and what depends on it, from starting.
	HoldTask struct{ Task, Reason string }
	// ReleaseTask lifts the hold.
	ReleaseTask struct{ Task, Reason string }
	// Decision is about a task that waits for one. Attempt is the one that is decided about; 0 is whichever is the latest.
	Decision struct {
		Task string
		// Question that is answered, as TaskStatus has it; 0 is whichever the task asks now.
		Question int
		Action   Action
		Output   json.RawMessage
		With     json.RawMessage
		Reason   string
	}
	// Migrate continues with another definition.
	Migrate struct {
		To   *Definition
		Plan []Change
	}
)

func (Tick) input()        {}
func (ActDone) input()     {}
func (ActFailed) input()   {}
func (ActAsks) input()     {}
func (ActRecords) input()  {}
func (ActSays) input()     {}
func (UndoDone) input()    {}
func (UndoBroke) input()   {}
func (HandlerDone) input() {}
func (VerifyDone) input()  {}
func (PauseRun) input()    {}
func (ResumeRun) input()   {}
func (AbortRun) input()    {}
func (HoldTask) input()    {}
func (ReleaseTask) input() {}
func (Decision) input()    {}
func (Migrate) input()     {}
