package request

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Observation represents what the runner has observed or done. It is one of the types below, or the
// event Paused, Restored or TransientFailure.
type Observation any

// The observations.
type (
	// Selected contains Clusters that are not paused yet, with the state before the pause.
	Selected struct {
		Roots    []pause.Root
		Baseline map[object.Ref]pause.Baseline
		AckKinds map[string]pause.Duration
	}
	// Evaluated is the result of one evaluation of all objects.
	Evaluated struct {
		New       map[object.Ref]Ack
		Withdrawn map[object.Ref]string
		Deleted   []object.Ref // Clusters
		// Pending are the objects that have not acknowledged, by Cluster name.
		Pending map[string][]pause.PendingObject
		// Stable means that nothing is pending and that the previous evaluation had the same objects.
		Stable bool
	}
	// ResumeEvaluated is the result of one evaluation after the restore.
	ResumeEvaluated struct{ StillPaused []pause.PendingObject }
)

// maxNamedPending limits the pending objects in one event, and maxBatch the roots or other objects.
const maxNamedPending, maxBatch = 50, 1000

// Decide returns the events that follow from an observation.
func Decide(s *State, o Observation, now time.Time) []Event {
	if s.Finished() || s.Phase == "" {
		return nil
	}
	switch o := o.(type) {
	case Selected:
		return selectedEvents(s, o)
	case Paused:
		if !s.Releasing && len(o.Roots) > 0 {
			return []Event{o}
		}
	case Evaluated:
		if s.Releasing {
			return nil
		}
		return evaluatedEvents(s, o, now)
	case TransientFailure:
		if o != s.TransientFailure {
			return []Event{o}
		}
	case Restored:
		if s.Releasing && s.RestoredAt.IsZero() {
			return []Event{o}
		}
	case ResumeEvaluated:
		if s.Releasing && !s.RestoredAt.IsZero() {
			return resumeEvents(s, o.StillPaused, now)
		}
	}
	return nil
}

// selectedEvents returns the events that record Clusters before they are paused. The size of each
// event is limited.
func selectedEvents(s *State, o Selected) []Event {
	if s.Releasing {
		return nil
	}
	roots, baselines := slices.Collect(slices.Chunk(o.Roots, maxBatch)), pause.Batches(o.Baseline, maxBatch)
	if len(roots) == 0 {
		return nil
	}
	first := Intended{Roots: roots[0], AckKinds: o.AckKinds}
	if len(baselines) > 0 {
		first.Baseline, baselines = baselines[0], baselines[1:]
	}
	events := []Event{first}
	for _, part := range roots[1:] {
		events = append(events, Intended{Roots: part})
	}
	for _, part := range baselines {
		events = append(events, Intended{Baseline: part})
	}
	return events
}

func evaluatedEvents(s *State, o Evaluated, now time.Time) []Event {
	var events []Event
	if s.TransientFailure != (TransientFailure{}) {
		events = append(events, TransientFailure{})
	}
	if len(o.Deleted) > 0 {
		events = append(events, Dropped{Roots: o.Deleted})
	}
	for _, part := range pause.Batches(o.Withdrawn, maxBatch) {
		events = append(events, Withdrawn{Objects: part})
	}
	for _, part := range pause.Batches(o.New, maxBatch) {
		events = append(events, Acknowledged{Objects: part})
	}
	pending, all := countPending(o.Pending)
	if !reflect.DeepEqual(pending, s.Pending) {
		events = append(events, Waiting{pending})
	}
	switch {
	case o.Stable && len(s.Set) > 0 && s.Phase != v1alpha1.PauseAcknowledged:
		objects := len(s.Acks) + len(o.New)
		for ref := range o.Withdrawn {
			if _, had := s.Acks[ref]; had {
				objects--
			}
		}
		events = append(events, AllAcknowledged{Objects: objects})
	case len(all) > 0 && !s.Late:
		if late := s.overdue(all, now); len(late) > 0 {
			events = append(events, TimedOut{Objects: late[:min(len(late), maxNamedPending)], Total: len(late)})
		}
	}
	return events
}

func (s *State) overdue(all []pause.PendingObject, now time.Time) (overdue []pause.PendingObject) {
	for _, w := range all {
		if by := s.AcknowledgeBy(w.Ref.GroupKind()); !by.IsZero() && !now.Before(by) {
			overdue = append(overdue, w)
		}
	}
	return overdue
}

// AcknowledgeBy returns when the acknowledgement timeout of a kind ends, or zero if no object is pending.
func (s *State) AcknowledgeBy(groupKind string) time.Time {
	if s.PendingSince.IsZero() {
		return time.Time{}
	}
	limit, own := s.Spec.AckKinds[groupKind]
	if !own {
		limit = cmp.Or(s.AckKinds[groupKind], s.Spec.Acknowledge)
	}
	return s.PendingSince.Add(time.Duration(limit))
}

// ResumeBy returns when a Pause whose Clusters are restored ends even if objects still report that
// they are paused. It returns zero before that.
func (s *State) ResumeBy() time.Time {
	if s.RestoredAt.IsZero() {
		return time.Time{}
	}
	return s.RestoredAt.Add(time.Duration(s.Spec.Resume))
}

// countPending returns the counts of the pending objects, and all of them, sorted so that equal
// evaluations have equal results.
func countPending(by map[string][]pause.PendingObject) (p Pending, all []pause.PendingObject) {
	for cluster, list := range by {
		if len(list) == 0 {
			continue
		}
		if p.Clusters == nil {
			p.Clusters, p.Kinds = make(map[string]int), make(map[string]int)
		}
		p.Clusters[cluster] = len(list)
		for _, w := range list {
			p.Kinds[w.Ref.GroupKind()]++
		}
		all = append(all, list...)
	}
	slices.SortFunc(all, func(a, b pause.PendingObject) int {
		return cmp.Or(object.Compare(a.Ref, b.Ref), cmp.Compare(a.Reason, b.Reason))
	})
	p.Objects, p.Total = slices.Clone(all[:min(len(all), maxNamedPending)]), len(all)
	return p, all
}

func resumeEvents(s *State, asleep []pause.PendingObject, now time.Time) []Event {
	first := asleep[:min(len(asleep), maxNamedPending)]
	switch {
	case len(asleep) == 0:
		return []Event{Released{}}
	case !now.Before(s.ResumeBy()):
		return []Event{Released{StillPaused: first, Total: len(asleep)}}
	case len(asleep) != s.StillPausedTotal || !slices.Equal(first, s.StillPaused):
		return []Event{Waiting{Pending{Objects: first, Total: len(asleep)}}}
	default:
		return nil
	}
}
