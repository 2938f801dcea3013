package workflow

import "scute.dev/api/v1alpha1"

// Summary has the facts about a run that are available in constant time.
type Summary struct {
	Phase  Phase
	Counts v1alpha1.TaskCounts
	// InFlight is the number of effects in flight.
	InFlight int
	// Paused is set if an operator has paused the run; the next field is the reason.
	Paused       bool
	PausedReason string
	// Stopping is set if the run is being aborted or rolled back, or has been.
	Stopping bool
	// Settled is set if nothing more happens in this log, and no hold is left.
	Settled bool
}

// Summarize returns the summary of a run.
func Summarize(s *State) Summary {
	return Summary{
		Phase: CurrentPhase(s), Counts: s.counts(), InFlight: s.inFlight(), Paused: s.paused, PausedReason: s.pausedReason,
		Stopping: s.stopping != nil || s.ended != nil,
		Settled:  s.ended != nil || s.Stranded != "" && s.stopping != nil && s.holding.n == 0,
	}
}

// IsStrandedFor reports whether a process cannot drive the run, and need not try again until the run changes.
func IsStrandedFor(s *State, holder string) bool { return s.Stranded != "" && s.Holder == holder }
