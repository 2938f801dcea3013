package request

import (
	"maps"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// State is a pause as recorded by its events. The zero value is a pause that was not requested.
// Only Apply changes it.
type State struct {
	Spec   Spec
	Holder string // process that last claimed it
	Phase  v1alpha1.PausePhase
	// PausedAt is when the pause was last set on a Cluster. PendingSince is when the current wait began.
	StartedAt, PhaseSince, PausedAt, PendingSince, RestoredAt, FinishedAt time.Time

	// Roots contains the Clusters with their earlier pause state. Set contains the Clusters on
	// which the pause is set.
	Roots    []pause.Root
	Set      map[object.Ref]bool
	Baseline map[object.Ref]pause.Baseline
	// AckKinds contains the acknowledgement timeouts that CustomResourceDefinitions set, by
	// Kind.group. The Spec overrides them.
	AckKinds map[string]pause.Duration
	Acks     map[object.Ref]Ack
	// Pending contains the objects that have not acknowledged. It does not change after the
	// release.
	Pending Pending
	// Late means that objects did not acknowledge in time. Timeout contains the first of them.
	Late    bool
	Timeout TimedOut

	TransientFailure TransientFailure
	Releasing        bool
	Release          string
	StillPaused      []pause.PendingObject
	StillPausedTotal int
}

// ClaimedBy returns the process that last claimed the pause.
func (s *State) ClaimedBy() string { return s.Holder }

// Finished reports whether the pause is over.
func (s *State) Finished() bool { return !s.FinishedAt.IsZero() }

// Root returns the recorded Cluster with a reference. known is false if there is none.
func (s *State) Root(ref object.Ref) (root pause.Root, known bool) {
	i := slices.IndexFunc(s.Roots, func(r pause.Root) bool { return r.Ref == ref })
	if i < 0 {
		return root, false
	}
	return s.Roots[i], true
}

// Apply applies an event.
func (s *State) Apply(event Event, at time.Time) {
	switch e := event.(type) {
	case Requested:
		if s.Phase == "" {
			s.Spec, s.StartedAt = e.Spec, at
			s.enter(v1alpha1.PausePending, at)
		}
	case Claimed:
		s.Holder = e.Holder
		if s.Phase == v1alpha1.PausePending {
			s.enter(v1alpha1.PausePausing, at)
		}
	case Intended:
		s.applyIntended(e, at)
	case Paused:
		s.applyPaused(e, at)
	case Acknowledged:
		if s.Acks == nil {
			s.Acks = make(map[object.Ref]Ack, len(e.Objects))
		}
		maps.Copy(s.Acks, e.Objects)
	case Withdrawn:
		for ref := range e.Objects {
			delete(s.Acks, ref)
		}
	case Waiting:
		s.applyWaiting(e, at)
	case AllAcknowledged:
		s.Late, s.Timeout, s.Pending, s.PendingSince = false, TimedOut{}, Pending{}, time.Time{}
		s.enter(v1alpha1.PauseAcknowledged, at)
	case TimedOut:
		s.Late, s.Timeout = true, e
		s.enter(v1alpha1.PauseTimedOut, at)
	case Dropped:
		s.applyDropped(e.Roots)
	case TransientFailure:
		s.TransientFailure = e
	case ReleaseRequested: // keeps Pending, the objects that never acknowledged
		s.Releasing, s.Release, s.TransientFailure = true, e.Reason, TransientFailure{}
		s.enter(v1alpha1.PauseRestoring, at)
	case Restored:
		s.RestoredAt, s.TransientFailure = at, TransientFailure{}
		s.enter(v1alpha1.PauseResuming, at)
	case Released:
		s.FinishedAt, s.StillPaused, s.StillPausedTotal = at, e.StillPaused, e.Total
		s.enter(v1alpha1.PauseReleased, at)
		// Keep a finished pause small. The log has the details.
		s.Baseline, s.TransientFailure = nil, TransientFailure{}
	}
}

func (s *State) enter(phase v1alpha1.PausePhase, at time.Time) {
	if s.Phase != phase {
		s.Phase, s.PhaseSince = phase, at
	}
}

func (s *State) applyIntended(e Intended, at time.Time) {
	for _, root := range e.Roots {
		s.applyDropped([]object.Ref{root.Ref})
		s.Roots = append(s.Roots, root)
	}
	slices.SortFunc(s.Roots, func(a, b pause.Root) int { return object.Compare(a.Ref, b.Ref) })
	if s.Baseline == nil {
		s.Baseline = make(map[object.Ref]pause.Baseline, len(e.Baseline))
	}
	maps.Copy(s.Baseline, e.Baseline)
	if len(e.AckKinds) > 0 {
		s.AckKinds = e.AckKinds
	}
	if !s.Releasing {
		s.enter(v1alpha1.PausePausing, at)
	}
}

func (s *State) applyPaused(e Paused, at time.Time) {
	if s.Set == nil {
		s.Set = make(map[object.Ref]bool, len(e.Roots))
	}
	for _, ref := range e.Roots {
		s.Set[ref] = true
	}
	s.PausedAt, s.PendingSince, s.Late, s.Timeout = at, at, false, TimedOut{}
	if !s.Releasing {
		s.enter(v1alpha1.PauseAcknowledging, at)
	}
}

func (s *State) applyWaiting(e Waiting, at time.Time) {
	if s.Releasing {
		s.StillPaused, s.StillPausedTotal = e.Objects, e.Total
		return
	}
	s.Pending = e.Pending
	switch {
	case e.Total == 0:
		return
	case s.PendingSince.IsZero():
		s.PendingSince = at
	}
	if s.Phase == v1alpha1.PauseAcknowledged {
		s.enter(v1alpha1.PauseAcknowledging, at)
	}
}

func (s *State) applyDropped(refs []object.Ref) {
	s.Roots = slices.DeleteFunc(s.Roots, func(r pause.Root) bool { return slices.Contains(refs, r.Ref) })
	for _, ref := range refs {
		delete(s.Set, ref)
		maps.DeleteFunc(s.Acks, func(_ object.Ref, ack Ack) bool { return ack.Cluster == ref.Name })
	}
}
