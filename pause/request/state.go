package request

import (
	"maps"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// State is everything that is known of one pause. The zero value is one that nobody asked for. It is changed by Apply alone.
type State struct {
	Spec   Spec
	Holder string // incarnation that acts on it
	Phase  v1alpha1.PausePhase
	// Times of decisions. PausedAt is when the pause was last set on a Cluster, PendingSince when something was first waited for.
	StartedAt, PhaseSince, PausedAt, PendingSince, RestoredAt, FinishedAt time.Time

	// Roots are the Clusters, with what was found on them, and Set those of them on which the pause is set.
	Roots    []pause.Root
	Set      map[object.Ref]bool
	Baseline map[object.Ref]pause.Baseline
	// AckKinds are the times that definitions gave objects of their kinds to acknowledge. Those of the Spec go before them.
	AckKinds map[string]pause.Duration
	Acks     map[object.Ref]Ack
	// Pending is what is waited for; once the pause is released, what had not acknowledged it at its end.
	Pending Pending
	// Late: some did not acknowledge in time. Timeout names the first of them.
	Late    bool
	Timeout TimedOut

	TransientFailure TransientFailure
	// Release is why it ends, Releasing that it does.
	Releasing bool
	Release   string
	Asleep    []pause.Wait
	AsleepAll int
}

// ClaimedBy is the incarnation that acts on the pause.
func (s *State) ClaimedBy() string { return s.Holder }

// Finished says that the pause is over.
func (s *State) Finished() bool { return !s.FinishedAt.IsZero() }

// Root is the Cluster of a reference.
func (s *State) Root(ref object.Ref) (root pause.Root, known bool) {
	i := slices.IndexFunc(s.Roots, func(r pause.Root) bool { return r.Ref == ref })
	if i < 0 {
		return root, false
	}
	return s.Roots[i], true
}

// Apply takes one event in.
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
		s.intend(e, at)
	case Paused:
		s.paused(e, at)
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
		s.wait(e, at)
	case AllAcknowledged:
		s.Late, s.Timeout, s.Pending, s.PendingSince = false, TimedOut{}, Pending{}, time.Time{}
		s.enter(v1alpha1.PauseAcknowledged, at)
	case TimedOut:
		s.Late, s.Timeout = true, e
		s.enter(v1alpha1.PauseTimedOut, at)
	case Dropped:
		s.drop(e.Roots)
	case TransientFailure:
		s.TransientFailure = e
	case ReleaseRequested: // what is pending then stays as it is: it never acknowledged
		s.Releasing, s.Release, s.TransientFailure = true, e.Reason, TransientFailure{}
		s.enter(v1alpha1.PauseRestoring, at)
	case Restored:
		s.RestoredAt, s.TransientFailure = at, TransientFailure{}
		s.enter(v1alpha1.PauseResuming, at)
	case Released:
		s.FinishedAt, s.Asleep, s.AsleepAll = at, e.Asleep, e.Total
		s.enter(v1alpha1.PauseReleased, at)
		// What it took to get here is in the log; the state of what is over stays small.
		s.Baseline, s.TransientFailure = nil, TransientFailure{}
	}
}

func (s *State) enter(phase v1alpha1.PausePhase, at time.Time) {
	if s.Phase != phase {
		s.Phase, s.PhaseSince = phase, at
	}
}

// intend takes the place of what was known of the same Clusters.
func (s *State) intend(e Intended, at time.Time) {
	for _, root := range e.Roots {
		s.drop([]object.Ref{root.Ref})
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

func (s *State) paused(e Paused, at time.Time) {
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

func (s *State) wait(e Waiting, at time.Time) {
	if s.Releasing {
		s.Asleep, s.AsleepAll = e.For, e.Total
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

func (s *State) drop(refs []object.Ref) {
	s.Roots = slices.DeleteFunc(s.Roots, func(r pause.Root) bool { return slices.Contains(refs, r.Ref) })
	for _, ref := range refs {
		delete(s.Set, ref)
		maps.DeleteFunc(s.Acks, func(_ object.Ref, ack Ack) bool { return ack.Cluster == ref.Name })
	}
}
