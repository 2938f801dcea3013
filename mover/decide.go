package mover

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/internal/redact"
	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/view"
)

const (
	waitingInterval = 5 * time.Second // between two Waiting events
	maxWaiting      = 20              // objects in a Waiting event
)

// Limits that keep an event far below the log's limit of 1 MiB for a message. A reference has at
// most 0.5 KiB, an object of the plan 2 KiB, a finding 2 KiB.
const (
	maxPerEvent         = 250
	maxFindings         = 250
	maxExcluded         = 500
	maxClusterNameBytes = 512 << 10
)

// Decide returns the events that follow from an outcome. Call it with Tick before every step, so
// that an abort or a timeout takes effect first.
func Decide(s *State, o Outcome, now time.Time) ([]Event, error) {
	switch o := o.(type) {
	case Tick:
		return s.tick(), nil
	case PreflightDone:
		return decidePreflight(o), nil
	case RebuildDone:
		return s.decideRebuilt(o)
	case BaselineRead:
		return decideBaseline(o), nil
	case AcksRead:
		return s.decideAcks(o, now), nil
	case Drafted:
		return s.decideDraft(o)
	case CopiesUnacknowledged:
		return s.decideUnacknowledged(o, now), nil
	case VerifyDone:
		return s.decideVerified(o), nil
	case ResumeRead:
		return s.decideResume(o, now), nil
	case StepFailed:
		return s.decideFailure(o, now), nil
	case Event:
		return []Event{o}, nil
	default:
		return nil, fmt.Errorf("no rule for outcome %T", o)
	}
}

// tick returns the events that follow without a new outcome: an abort takes effect, and a rollback
// ends at once if the move has changed nothing.
func (s *State) tick() []Event {
	switch {
	case s.Abandon || s.Way != "":
		return nil // the operator's latest command applies
	case s.Lost != nil && s.Abort:
		return []Event{Resolved{Direction: Back, Reason: s.AbortReason}}
	case s.Lost != nil:
		return nil
	case s.Phase == PhaseRollingBack && len(s.Roots) == 0:
		return []Event{RolledBack{}} // nothing had been changed
	case s.Phase == PhaseRollingBack && (len(s.Plan) == 0 || !s.Posted) && !s.TargetCleared:
		return []Event{TargetCleared{}} // nothing was sent to the target
	case !s.Abort || s.Finished() || s.Phase == PhaseRollingBack:
		return nil
	case s.Verified():
		return []Event{AbortRefused{Reason: "the move is verified and is deleting at the source: it can no longer be rolled back"}}
	default:
		return []Event{RollbackStarted{Reason: s.abortReason()}}
	}
}

func (s *State) abortReason() string {
	if s.AbortReason == "" {
		return "requested by an operator"
	}
	return "requested by an operator: " + s.AbortReason
}

func decidePreflight(o PreflightDone) []Event {
	if size := len(strings.Join(o.Clusters, `","`)); size > maxClusterNameBytes {
		o.Findings = slices.Clone(o.Findings)
		o.Findings.AddError("spec.selection", fmt.Sprintf("%d Clusters with %d bytes of names exceed the limit of one move", len(o.Clusters), size),
			"split the move: select fewer Clusters by name in each Move")
	}
	if o.Findings.HasErrors() {
		return []Event{Refused{Findings: truncateFindings(o.Findings)}}
	}
	return []Event{PreflightPassed{Clusters: o.Clusters, TargetID: o.TargetID, Warnings: truncateFindings(o.Findings)}}
}

func decideBaseline(o BaselineRead) []Event {
	var events []Event
	for _, part := range pause.Batches(o.Objects, maxPerEvent) {
		taken := BaselineTaken{Objects: part}
		if len(events) == 0 {
			taken.AckKinds = o.AckKinds
		}
		events = append(events, taken)
	}
	return append(events, pauseIntendedEvents(o.Roots)...)
}

func pauseIntendedEvents(roots []pause.Root) []Event {
	var events []Event
	count := 0
	for part := range slices.Chunk(roots, maxPerEvent) {
		count += len(part)
		events = append(events, PauseIntended{Roots: part, Part: (count - 1) / maxPerEvent, More: count < len(roots)})
	}
	return events
}

func (s *State) decideAcks(o AcksRead, now time.Time) []Event {
	var events []Event
	for _, part := range pause.Batches(o.New, maxPerEvent) {
		events = append(events, Acknowledged{Objects: part})
	}
	if len(o.Pending) == 0 {
		return append(events, s.decideStable(o.Stable, now)...)
	}
	for _, w := range o.Pending {
		if limit := s.ackTimeout(w.Ref); now.After(s.PausedAt.Add(limit)) {
			return append(events, s.failureEvents(
				fmt.Sprintf("not every controller acknowledged the pause within %s: %s", view.Duration(limit), Summary(o.Pending)),
				"check the controllers of these objects, or raise spec.timeouts.acknowledge if they are only slow; then create another Move")...)
		}
	}
	return s.appendWaiting(events, o.Pending, now)
}

// decideStable returns AllAcknowledged if two consecutive reads returned the same objects (stable).
// Until then, more objects may be created that must acknowledge the pause. After the timeout it
// returns a failure.
func (s *State) decideStable(stable bool, now time.Time) []Event {
	limit := s.maxAckTimeout()
	switch {
	case stable:
		return []Event{AllAcknowledged{}}
	case now.After(s.orClaimedAt(s.PausedAt).Add(limit)):
		return s.failureEvents(fmt.Sprintf("selected objects are still being created or deleted %s after the pause", view.Duration(limit)),
			"find out what creates and deletes these objects while their clusters are paused, then create another Move")
	default:
		return nil
	}
}

// appendWaiting returns events with a Waiting event added if the pending objects have changed, at
// most once per waitingInterval. After a transient failure it always adds one, which records that
// the failure is over.
func (s *State) appendWaiting(events []Event, pending []ObjectReason, now time.Time) []Event {
	w := newWaiting(pending)
	if s.TransientFailure.Message == "" && (slices.Equal(w.For, s.Waiting) && w.Total == s.WaitingTotal || now.Sub(s.WaitingSince) < waitingInterval) {
		return events
	}
	return append(events, w)
}

func newWaiting(pending []ObjectReason) Waiting {
	return Waiting{For: redactWaits(pending[:min(len(pending), maxWaiting)]), Total: len(pending)}
}

func (s *State) decideDraft(o Drafted) ([]Event, error) {
	if changed := s.changedRoots(o.Items); len(changed) > 0 && !s.Spec.DryRun {
		return s.failureEvents("the selected objects differ from the paused objects: "+Summary(changed), "create another Move"), nil
	}
	hash, err := PlanHash(o.Items)
	if err != nil {
		return nil, err
	}
	excluded := redactWaits(o.Excluded[:min(len(o.Excluded), maxExcluded)])
	events := append(planDraftedEvents(o.Items), Planned{Hash: hash, Excluded: excluded, Announced: true})
	if s.Spec.DryRun {
		events = append(events, Succeeded{})
	}
	return events, nil
}

func planDraftedEvents(items []Item) []Event {
	var events []Event
	for part := range slices.Chunk(items, maxPerEvent) {
		events = append(events, PlanDrafted{First: len(events) == 0, Items: part})
	}
	return events
}

// changedRoots returns the roots of the plan that move but were not paused, or that were paused but
// stay. If an unpaused root were copied, both clusters would act on the same machines. A paused
// root that stays would never be resumed.
func (s *State) changedRoots(plan []Item) []ObjectReason {
	paused := make(map[object.Ref]types.UID, len(s.Roots))
	for _, r := range s.Roots {
		paused[r.Ref] = r.UID
	}
	var changed []ObjectReason
	for _, item := range plan {
		uid, held := paused[item.Ref]
		switch {
		case !pause.IsRoot(item.Ref):
		case item.KeepReason == "" && (!held || uid != item.UID):
			changed = append(changed, ObjectReason{Ref: item.Ref, Reason: "it was created after the pause and is not paused"})
		case item.KeepReason != "" && held:
			changed = append(changed, ObjectReason{Ref: item.Ref, Reason: "it was paused for the move, but now stays at the source: " + item.KeepReason})
		}
	}
	return changed
}

// decideUnacknowledged returns the events while the target's controllers have not acknowledged that
// every copy is paused: a wait, or a failure after the timeout. Nothing is deleted at the source
// before they have, because an active controller whose cache lacks a Machine would create another
// Machine.
func (s *State) decideUnacknowledged(o CopiesUnacknowledged, now time.Time) []Event {
	switch {
	case s.Abort:
		return s.tick()
	case now.After(s.copyAckDeadline()):
		return s.failureEvents("the controllers of the target have not acknowledged that every copy is paused: "+Summary(o.Pending),
			"check that the controllers of these objects run on the target, then create another Move")
	default:
		return s.appendWaiting(nil, o.Pending, now)
	}
}

func (s *State) decideVerified(o VerifyDone) []Event {
	if s.Abort {
		return s.tick() // an abort during the verification is in time
	}
	if len(o.Differences) == 0 {
		return []Event{Verified{}}
	}
	return s.failureEvents("the target differs from the plan, or the source changed: "+Summary(o.Differences),
		"find out what wrote to these objects while they were paused, then create another Move")
}

func (s *State) decideResume(o ResumeRead, now time.Time) []Event {
	var events []Event
	for refs := range slices.Chunk(o.New, maxPerEvent) {
		events = append(events, Resumed{Objects: refs})
	}
	if len(o.Pending) == 0 {
		return append(events, Succeeded{})
	}
	// The move ends although objects are pending, because a controller of the target may never
	// acknowledge them.
	if now.After(s.resumeDeadline()) {
		named := newWaiting(o.Pending)
		return append(events, Succeeded{StillPaused: named.For, Total: named.Total})
	}
	return s.appendWaiting(events, o.Pending, now)
}

// decideFailure returns the events after a failed step: a rollback if the failure is final or lasts
// too long, or a TransientFailure, after which the step is retried. From Verified on, and in a
// rollback, steps are retried forever, except in the last wait (AwaitResume).
func (s *State) decideFailure(o StepFailed, now time.Time) []Event {
	o.Message = redact.Message(o.Message)
	if s.PausesBack && s.Phase == PhaseResuming && now.After(s.resumeDeadline()) {
		return []Event{s.unconfirmedSuccess(o.Message)}
	}
	if until := s.retryDeadline(now); until.IsZero() || !o.Final && !now.After(until) {
		if s.TransientFailure.Message == o.Message && s.TransientFailure.Stranded == o.Stranded {
			return nil
		}
		return []Event{TransientFailure{Message: o.Message, Next: redact.Message(o.Next), Stranded: o.Stranded}}
	}
	if s.Phase == PhasePreflight || s.Spec.DryRun {
		return []Event{Refused{Findings: []Finding{{Error, "spec", o.Message, o.Next}}}}
	}
	return s.failureEvents(o.Message, o.Next)
}

// unconfirmedSuccess returns the event that ends a move whose target cannot be read during the last
// wait. No other work remains then.
func (s *State) unconfirmedSuccess(why string) Succeeded {
	asleep := slices.Clone(s.Waiting)
	for i := range asleep {
		asleep[i].Reason = "the target could not be read: " + why
	}
	return Succeeded{StillPaused: asleep, Total: s.Counts.ToResume - s.Counts.Resumed}
}

func (s *State) failureEvents(message, next string) []Event {
	events := []Event{Failed{Message: message, Next: next}}
	if s.Spec.KeepFailed {
		return events
	}
	return append(events, RollbackStarted{Reason: message})
}

// Summary returns a text with the first objects of a list, their reasons, and the number of the
// other objects.
func Summary(list []ObjectReason) string {
	const named = 5
	var said []string
	for _, w := range list[:min(len(list), named)] {
		said = append(said, w.Ref.String()+" ("+redact.Message(w.Reason)+")")
	}
	return strings.Join(view.More(said, len(list)), "; ")
}

const abandonedAdvice = "the source stays paused because some of its objects are already deleted. If the target comes back, resume the clusters " +
	"there; otherwise restore them from a backup. Then remove the annotations scute.dev/* from the remaining objects at the source"

// decideRebuilt returns the events that record the state that was read from both clusters. Rebuilt,
// the last event, makes them take effect. If the process dies before Rebuilt is stored, the
// clusters are read again.
func (s *State) decideRebuilt(o RebuildDone) ([]Event, error) {
	hash, err := PlanHash(o.Items)
	if err != nil {
		return nil, err
	}
	var events []Event
	if s.TargetID == "" {
		events = append(events, PreflightPassed{Clusters: o.Clusters, TargetID: o.TargetID})
	}
	if len(o.Roots) == 0 {
		events = append(events, PauseIntended{})
	}
	events = slices.Concat(events, pauseIntendedEvents(o.Roots), planDraftedEvents(o.Items), []Event{Planned{Hash: hash}})
	for _, part := range pause.Batches(o.Created, maxPerEvent) {
		events = append(events, Created{Objects: part})
	}
	return append(events, Rebuilt{Direction: s.Way}), nil
}

// NothingLeft returns the event that ends a move of which neither cluster has an object.
func NothingLeft() Abandoned { return Abandoned{Reason: nothingLeftMessage, Next: checkTargetAdvice} }

// MissingEnd returns the event that ends a move that has ended according to its resource, but not
// according to a log that was restored from an older backup. how is the end that the resource
// reports.
func MissingEnd(how string) Abandoned {
	return Abandoned{Reason: "the event log was restored from before the move ended (" + how + ")", Next: checkTargetAdvice}
}

// truncateFindings returns the first findings, errors before warnings. If it omits any, it adds a
// finding with their number.
func truncateFindings(list []Finding) []Finding {
	kept := slices.Clone(list)
	slices.SortStableFunc(kept, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	if more := len(kept) - maxFindings; more > 0 {
		kept = append(kept[:maxFindings:maxFindings], Finding{
			Severity: kept[maxFindings].Severity, Field: "spec",
			Message: fmt.Sprintf("%d more findings are not listed", more), Remedy: "fix the listed findings first",
		})
	}
	for i := range kept {
		kept[i].Message = redact.Message(kept[i].Message)
	}
	return kept
}

func redactWaits(list []ObjectReason) []ObjectReason {
	list = slices.Clone(list)
	for i := range list {
		list[i].Reason = redact.Message(list[i].Reason)
	}
	return list
}
