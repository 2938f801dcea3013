package remediator

import "time"

// step defines a state of a remediation: its meaning, its writes and its transitions. The
// transitions are tried in their order, and the first one that applies is recorded.
//
// The tables in docs/design/remediation-states.md are generated from steps.
type step struct {
	name    Step
	meaning string
	writes  func(remediation) []Action
	exits   []transition
}

// transition defines an observation that may be made in a state, the event that records it, and the next state.
type transition struct {
	when   string
	event  Event // example of the recorded event
	to     Step  // same, ended, or another step
	events func(remediation) []Event
	deadline
}

// deadline defines the time at which a transition is due even if no fact changes. It is used by the
// transition and by the outlook.
type deadline struct {
	due  func(remediation) time.Time // zero if time alone does not cause it now; nil if it never does
	then string                      // what happens then, for users
}

func (r remediation) reached(due time.Time) bool { return !due.IsZero() && !r.now.Before(due) }

// Targets of transitions that do not lead to another step.
const (
	same  Step = ""
	ended Step = "ended"
)

// steps is the state machine of a remediation. Each step is in a file step_*.go, with its writes
// and transitions. Transitions that most steps have are in transitions.go.
var steps = []step{stepRequesting, stepReplacing, stepRemoving, stepDeleting, stepSettling, stepCancelling, stepSparing}

// Transitions that several steps share: transitions that depend on the machine, transitions that
// depend on replicas, and transitions to a cancellation.
var (
	victimTransitions  = []transition{ownerGone, victimGone, victimDeletionStarted}
	replicaTransitions = []transition{raised, restored}
	cancelTransitions  = []transition{ownerDeleted, aborted, skipped, deselected, recovered, reverted}
)

func stepOf(name Step) *step {
	return find(steps, func(s *step) bool { return s.name == name })
}

// advance returns the next events of the remediations in progress. While the active remediation is
// resting, it returns the events of any other remediation that has a transition, preceded by
// Continued.
func advance(s *State, f *Facts, now time.Time) []Event {
	if s.Active == nil {
		return nil
	}
	if why := s.interference(f); why != "" {
		return s.mergeEvents(why)
	}
	if events := s.advanceActive(f, now); len(events) > 0 || !s.Active.isResting(f) {
		return events
	}
	for _, a := range s.InProgress() {
		if events := s.focused(a).advanceActive(f, now); len(events) > 0 {
			return append([]Event{Continued{Machine: a.Victim}}, events...)
		}
	}
	return nil
}

// advanceActive returns the next events of the active remediation.
func (s *State) advanceActive(f *Facts, now time.Time) []Event {
	s, f = s.activeView(f)
	r := s.remediation(f, now)
	if f.Owner.Found || r.orphaned() {
		if events := r.suspend(); len(events) > 0 {
			return events
		}
	}
	for _, t := range stepOf(r.Step).exits {
		if events := t.events(r); len(events) > 0 {
			return events
		}
	}
	return nil
}

func (t transition) withTarget(to Step) transition {
	t.to = to
	return t
}

// by returns the transition with a deadline.
func (t transition) by(due func(remediation) time.Time, then string) transition {
	t.deadline = deadline{due: due, then: then}
	return t
}

func eventIf(so bool, e Event) []Event {
	if !so {
		return nil
	}
	return []Event{e}
}

// observes returns a transition that records a fixed event when is returns true.
func observes(when string, event Event, to Step, is func(remediation) bool) transition {
	return transition{when: when, event: event, to: to, events: func(r remediation) []Event { return eventIf(is(r), event) }}
}

// timed returns a transition that records an event once the time that due returns has passed. then
// describes for users what happens.
func timed[E Event](when string, to Step, due func(remediation) time.Time, then string, record func(remediation) E) transition {
	var sample E
	return transition{when: when, event: sample, to: to, deadline: deadline{due: due, then: then}, events: func(r remediation) []Event {
		if !r.reached(due(r)) {
			return nil
		}
		return []Event{record(r)}
	}}
}

// expires returns a transition that starts a cancellation once the time that due returns has
// passed. say returns the reason.
func expires(when string, cause cause, due func(remediation) time.Time, say func(remediation) string) transition {
	return cancels(when, cause, func(r remediation) string {
		if !r.reached(due(r)) {
			return ""
		}
		return say(r)
	}).by(due, thenCancelled)
}

// cancels returns a transition that starts a cancellation when why returns a reason.
func cancels(when string, cause cause, why func(remediation) string) transition {
	return transition{when: when, event: CancelStarted{Cause: cause}, to: cancelling, events: func(r remediation) []Event {
		reason := why(r)
		return eventIf(reason != "", CancelStarted{Cause: cause, Reason: reason})
	}}
}

// ends returns a transition that ends the remediation without undoing anything when why returns a
// reason.
func ends(when string, cause cause, why func(remediation) string) transition {
	return transition{when: when, event: Cancelled{Cause: cause}, to: ended, events: func(r remediation) []Event {
		reason := why(r)
		if reason == "" {
			return nil
		}
		return []Event{CancelStarted{Cause: cause, Reason: reason}, Cancelled{Cause: cause}}
	}}
}
