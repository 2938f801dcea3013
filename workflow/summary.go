package workflow

import "scute.dev/api/v1alpha1"

// Summary is what can be said of a run at once, however large it is.
type Summary struct {
	Phase  Phase
	Counts v1alpha1.TaskCounts
	// InFlight is the number of effects that are being performed.
	InFlight int
	// Paused by an operator, as a whole, and why.
	Paused       bool
	PausedReason string
	// Stopping: it is aborted or rolled back, or has been.
	Stopping bool
	// Settled: nothing more happens in this log, and nothing is held that somebody waits for.
	Settled bool
}

// Look summarizes a run.
func Look(s *State) Summary {
	return Summary{
		Phase: CurrentPhase(s), Counts: s.counts(), InFlight: s.inFlight(), Paused: s.paused, PausedReason: s.pausedReason,
		Stopping: s.stopping != nil || s.ended != nil,
		Settled:  s.ended != nil || s.Stranded != "" && s.stopping != nil && s.holding.n == 0,
	}
}

// StrandedHere says that a process has come to know that it cannot continue with the run: until the run changes, it need not
// look again.
func StrandedHere(s *State, holder string) bool { return s.Stranded != "" && s.Holder == holder }
