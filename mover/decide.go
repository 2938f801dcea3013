package mover

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

const (
	// quietTime is how long a phase before Verified may go on failing in ways that may pass.
	quietTime = 5 * time.Minute
	// waitingEvery bounds how often the log is told what is waited for.
	waitingEvery = 5 * time.Second
	// waitingNamed bounds how many objects a Waiting event names.
	waitingNamed = 20
	// perEvent bounds the objects in one event, so that a commit stays far below the log's message limit.
	perEvent = 1000
)

// Decide says which facts follow from an outcome. It is called with Tick before every step, so that an operator's
// abort and the passing of time are heard before anything is done.
func Decide(s *State, o Outcome, now time.Time) ([]Event, error) {
	switch o := o.(type) {
	case Tick:
		return s.tick(now), nil
	case PreflightDone:
		return decidePreflight(o), nil
	case BaselineSeen:
		return decideBaseline(o), nil
	case PauseSet:
		return []Event{Paused{}}, nil
	case AcksSeen:
		return s.decideAcks(o, now), nil
	case Drafted:
		return s.decideDraft(o)
	case CreatedSome:
		return []Event{Created(o)}, nil
	case CreateDone:
		return []Event{AllCreated{}}, nil
	case VerifyDone:
		return s.decideVerified(o), nil
	case DeletedSome:
		return []Event{Deleted(o)}, nil
	case DeleteDone:
		return []Event{SourceEmptied{}}, nil
	case PausesSet:
		return []Event{PausesRestored{}}, nil
	case AwakeSeen:
		return s.decideAwake(o, now), nil
	case RemovedSome:
		return []Event{Removed(o)}, nil
	case ClearDone:
		return []Event{TargetCleared{}}, nil
	case SourceBack:
		return []Event{RolledBack{}}, nil
	case StepFailed:
		return s.decideFailure(o, now), nil
	default:
		return nil, fmt.Errorf("no rule for outcome %T", o)
	}
}

// tick answers an abort. Before Verified it is a rollback; of a move that changed nothing, the end.
func (s *State) tick(time.Time) []Event {
	switch {
	case s.Phase == PhaseRollingBack && len(s.Roots) == 0:
		return []Event{RolledBack{}} // nothing had been changed
	case s.Phase == PhaseRollingBack && len(s.Plan) == 0 && !s.TargetCleared:
		return []Event{TargetCleared{}} // nothing had been created
	case !s.Abort || s.Finished() || s.Phase == PhaseRollingBack:
		return nil
	case s.Verified():
		return []Event{AbortRefused{Why: "the move is verified and the source is being emptied: from here it only goes forward"}}
	default:
		reason := "an operator asked for it"
		if s.AbortReason != "" {
			reason += ": " + s.AbortReason
		}
		return []Event{RollbackStarted{Reason: reason}}
	}
}

func decidePreflight(o PreflightDone) []Event {
	if slices.ContainsFunc(o.Findings, func(f Finding) bool { return f.Severity == Error }) {
		return []Event{Refused{Findings: o.Findings}}
	}
	return []Event{PreflightPassed{Clusters: o.Clusters, Warnings: o.Findings}}
}

func decideBaseline(o BaselineSeen) []Event {
	var events []Event
	for refs := range slices.Chunk(slices.SortedFunc(maps.Keys(o.Objects), object.Compare), perEvent) {
		part := make(map[object.Ref]pause.Baseline, len(refs))
		for _, r := range refs {
			part[r] = o.Objects[r]
		}
		events = append(events, BaselineTaken{Objects: part})
	}
	return append(events, PauseIntended{Roots: o.Roots})
}

func (s *State) decideAcks(o AcksSeen, now time.Time) []Event {
	var events []Event
	if len(o.New) > 0 {
		events = append(events, Acknowledged{Objects: o.New})
	}
	if len(o.Pending) == 0 {
		if o.Stable {
			events = append(events, AllAcknowledged{})
		}
		return events
	}
	for _, w := range o.Pending {
		if limit := s.ackLimit(w.Ref); now.Sub(s.PausedAt) > limit {
			return append(events, s.failed(
				fmt.Sprintf("not every controller acknowledged the pause within %s: %s", limit, summary(o.Pending)),
				"look at the controllers of the objects named; raise spec.timeouts.acknowledge if they are only slow; then make another Move")...)
		}
	}
	return s.waiting(events, o.Pending, now)
}

func (s *State) ackLimit(r object.Ref) time.Duration {
	if d, ok := s.Spec.AckKinds[r.GroupKind()]; ok {
		return time.Duration(d)
	}
	return time.Duration(s.Spec.Acknowledge)
}

// waiting tells the log what is missing when that changed, and not more often than anybody would read it.
func (s *State) waiting(events []Event, pending []Wait, now time.Time) []Event {
	named := pending[:min(len(pending), waitingNamed)]
	if slices.Equal(named, s.Waiting) && len(pending) == s.WaitingTotal || now.Sub(s.WaitingSince) < waitingEvery {
		return events
	}
	return append(events, Waiting{For: slices.Clone(named), Total: len(pending)})
}

func (s *State) decideDraft(o Drafted) ([]Event, error) {
	hash, err := PlanHash(o.Items)
	if err != nil {
		return nil, err
	}
	var events []Event
	for part := range slices.Chunk(o.Items, perEvent) {
		events = append(events, PlanDrafted{First: len(events) == 0, Items: part})
	}
	events = append(events, Planned{Hash: hash, Left: o.Left})
	if s.Spec.DryRun {
		events = append(events, Succeeded{})
	}
	return events, nil
}

func (s *State) decideVerified(o VerifyDone) []Event {
	if len(o.Differences) == 0 {
		return []Event{Verified{}}
	}
	return s.failed("the target does not hold what was planned, or the source changed: "+summary(o.Differences),
		"find out what wrote to these objects while they were paused, then make another Move")
}

func (s *State) decideAwake(o AwakeSeen, now time.Time) []Event {
	var events []Event
	if len(o.New) > 0 {
		events = append(events, Awoke{Objects: o.New})
	}
	if len(o.Pending) == 0 {
		return append(events, Succeeded{})
	}
	if limit := time.Duration(s.Spec.Awake); now.Sub(s.PhaseSince) > limit && s.Setback == "" {
		events = append(events, Setback{Message: fmt.Sprintf("not every object woke on the target within %s: %s", limit, summary(o.Pending))})
	}
	return s.waiting(events, o.Pending, now)
}

// decideFailure: before Verified what cannot be helped, or does not pass in time, is rolled back; from Verified on,
// and in a rollback, a move never gives up.
func (s *State) decideFailure(o StepFailed, now time.Time) []Event {
	again := func() []Event {
		if s.Setback == o.Message {
			return nil
		}
		return []Event{Setback{Message: o.Message}}
	}
	if s.Verified() || s.Phase == PhaseRollingBack {
		return again()
	}
	limit := quietTime
	if s.Phase == PhaseCreating {
		limit = time.Duration(s.Spec.Create)
	}
	if !o.Final && now.Sub(s.PhaseSince) <= limit {
		return again()
	}
	if s.Phase == PhasePreflight || s.Spec.DryRun {
		return []Event{Refused{Findings: []Finding{{Severity: Error, Field: "spec", Message: o.Message, Remedy: o.Next}}}}
	}
	return s.failed(o.Message, o.Next)
}

func (s *State) failed(message, next string) []Event {
	events := []Event{Failed{Message: message, Next: next}}
	if s.Spec.KeepFailed {
		return events
	}
	return append(events, RollbackStarted{Reason: message})
}

func summary(list []Wait) string {
	const named = 5
	var parts []string
	for _, w := range list[:min(len(list), named)] {
		parts = append(parts, w.Ref.String()+" ("+w.Why+")")
	}
	if len(list) > named {
		parts = append(parts, fmt.Sprintf("and %d more", len(list)-named))
	}
	return strings.Join(parts, "; ")
}
