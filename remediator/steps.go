package remediator

import "time"

// step is a state of a remediation: what it means, what is written in it, and every way out of it. The transitions are tried in
// their order. The first one that is seen is recorded.
//
// The table in docs/design/remediation-states.md is generated from this one.
type step struct {
	name   Step
	means  string
	awaits func(remediation) string // what happens next, in words for people
	writes func(remediation) []Action
	exits  []transition
}

// transition is what may be seen in a state, the fact that is recorded of it, and the state that follows.
type transition struct {
	when  string
	event Event // a sample of it
	to    Step  // same, or ended, or another step
	facts func(remediation) []Event
	deadline
}

// deadline is when something happens though nothing else changes. The step function and the outlook of people both ask it.
type deadline struct {
	due  func(remediation) time.Time // zero when no time brings it about; nil where none ever does
	then string                      // what happens then, in words for people
}

// reached says that the time has come.
func (r remediation) reached(due time.Time) bool { return !due.IsZero() && !r.now.Before(due) }

// The transitions that lead to no other step.
const (
	same  Step = ""
	ended Step = "ended"
)

// steps is the state machine of a remediation. Each step is in a file step_*.go, with what it awaits, what is
// written in it, and its transitions. Those that most steps have are in transitions.go, and what a deletion
// waits for in removal.go.
//
//nolint:gochecknoglobals // a table
var steps = []step{stepRequesting, stepReplacing, stepRemoving, stepDeleting, stepSettling, stepCancelling, stepSparing}

// What several steps have in common: what is seen of the machine, of replicas, and the reasons to take it back.
//
//nolint:gochecknoglobals // a table
var (
	there    = []transition{ownerGone, victimGone, victimLeaving}
	replicas = []transition{raised, restored}
	reasons  = []transition{ownerDeleted, aborted, skipped, deselected, recovered, reverted}
)

func stepOf(name Step) *step {
	return find(steps, func(s *step) bool { return s.name == name })
}

// advance says how far the remediations that have been started have come. While the active one rests, something may be due for another.
func advance(s *State, f *Facts, now time.Time) []Event {
	if s.Active == nil {
		return nil
	}
	if why := s.disturbed(f); why != "" {
		return s.merged(why)
	}
	if events := s.advanceActive(f, now); len(events) > 0 || !s.Active.rests(f) {
		return events
	}
	for _, a := range s.InProgress() {
		if events := s.focused(a).advanceActive(f, now); len(events) > 0 {
			return append([]Event{Continued{Machine: a.Victim}}, events...)
		}
	}
	return nil
}

// advanceActive says how far the active one has come.
func (s *State) advanceActive(f *Facts, now time.Time) []Event {
	s, f = s.apart(f)
	r := s.remediation(f, now)
	if f.Owner.Found || r.orphaned() {
		if events := r.suspend(); len(events) > 0 {
			return events
		}
	}
	state := stepOf(r.Step)
	if state == nil {
		return nil
	}
	for _, t := range state.exits {
		if events := t.facts(r); len(events) > 0 {
			return events
		}
	}
	return nil
}

// leading is the transition in a step where it leads elsewhere.
func (t transition) leading(to Step) transition {
	t.to = to
	return t
}

// seen makes a transition of one fact without details.
func seen(when string, event Event, to Step, is func(remediation) bool) transition {
	return transition{when: when, event: event, to: to, facts: func(r remediation) []Event {
		if !is(r) {
			return nil
		}
		return []Event{event}
	}}
}

// timed makes a transition of the fact that record returns when a time has come; then says what happens.
func timed[E Event](when string, to Step, due func(remediation) time.Time, then string, record func(remediation) E) transition {
	var sample E
	return transition{when: when, event: sample, to: to, deadline: deadline{due: due, then: then}, facts: func(r remediation) []Event {
		if !r.reached(due(r)) {
			return nil
		}
		return []Event{record(r)}
	}}
}

// expires makes a transition that starts to take back what was asked for when a time has come; say is why, then.
func expires(when string, cause Cause, due func(remediation) time.Time, say func(remediation) string) transition {
	t := cancels(when, cause, func(r remediation) string {
		if !r.reached(due(r)) {
			return ""
		}
		return say(r)
	})
	t.deadline = deadline{due: due, then: takenBack}
	return t
}

// cancels makes a transition that starts to take back what was asked for; why is "" while there is no reason to.
func cancels(when string, cause Cause, why func(remediation) string) transition {
	return transition{when: when, event: CancelStarted{Cause: cause}, to: Cancelling, facts: func(r remediation) []Event {
		reason := why(r)
		if reason == "" {
			return nil
		}
		return []Event{CancelStarted{Cause: cause, Reason: reason}}
	}}
}

// ends makes a transition after which there is nothing to take back.
func ends(when string, cause Cause, why func(remediation) string) transition {
	return transition{when: when, event: Cancelled{Cause: cause}, to: ended, facts: func(r remediation) []Event {
		reason := why(r)
		if reason == "" {
			return nil
		}
		return []Event{CancelStarted{Cause: cause, Reason: reason}, Cancelled{Cause: cause}}
	}}
}
