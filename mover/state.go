package mover

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Phase is the progress of a move.
type Phase = v1alpha1.MovePhase

// The phases, in the order of docs/design/mover.md.
const (
	PhasePending      Phase = "Pending"
	PhasePreflight    Phase = "Preflight"
	PhasePausing      Phase = "Pausing"
	PhaseAwaitingAcks Phase = "AwaitingAcks"
	PhasePlanned      Phase = "Planned"
	PhaseCreating     Phase = "Creating"
	PhaseVerified     Phase = "Verified"
	PhaseDeleting     Phase = "Deleting"
	PhaseResuming     Phase = "Resuming"
	PhaseSucceeded    Phase = "Succeeded"
	PhaseRollingBack  Phase = "RollingBack"
	PhaseRolledBack   Phase = "RolledBack"
	PhaseFailed       Phase = "Failed"
	PhaseStranded     Phase = "Stranded" // the log lacks the progress of the move
)

// State is a move as recorded by its events. The zero value is a move that was not requested.
type State struct {
	Spec Spec
	Home Home
	// MarkLog is the ID of the log in the move's annotations. If the log that recorded the move was
	// lost, it is the ID of the lost log.
	MarkLog   string
	Phase     Phase
	Holder    string // the process that claimed it last
	ClaimedAt time.Time

	Clusters []string
	// TargetID is the UID of the target's namespace kube-system. The move changes no other cluster,
	// even if the kubeconfig changes.
	TargetID string
	Findings []Finding

	pause.State // of the source
	// AckKinds contains the acknowledgement timeouts that CustomResourceDefinitions set, by
	// Kind.group. Spec.AckKinds overrides them.
	AckKinds map[string]Duration
	// MoreRoots means that Roots is incomplete.
	MoreRoots bool

	Draft    []Item
	Plan     []Item
	PlanHash string
	Left     []ObjectReason

	// Posted means that the target may have objects of the plan.
	Posted     bool
	Created    map[object.Ref]types.UID
	Adopted    map[object.Ref]bool
	AllCreated bool
	Deleted    map[object.Ref]bool
	Removed    map[object.Ref]bool
	Resumed    map[object.Ref]bool

	Waiting      []ObjectReason
	WaitingTotal int
	WaitingSince time.Time
	// TransientFailure is why the last attempt failed; zero if it succeeded.
	TransientFailure      TransientFailure
	TransientFailureSince time.Time
	Lost                  *LogLost
	Way                   Direction
	Abandon               bool
	Abort                 bool
	AbortReason           string
	AbortRefused          bool
	Failure               Failed
	RollbackCause         string
	TargetCleared         bool
	PausesBack            bool
	ResumedAt             time.Time
	// StillPausedTotal is the number of objects that had not resumed when the move ended. Waiting
	// contains the first of them.
	StillPausedTotal int

	StartedAt  time.Time
	PhaseSince time.Time
	FinishedAt time.Time

	// Counts is kept when the move ends, unlike the maps.
	Counts v1alpha1.MoveCounts
}

// Finished reports whether the move has ended.
func (s *State) Finished() bool { return !s.FinishedAt.IsZero() }

// Verified reports whether the move has passed the point of no return.
func (s *State) Verified() bool {
	switch s.Phase {
	case PhaseVerified, PhaseDeleting, PhaseResuming, PhaseSucceeded:
		return true
	default:
		return false
	}
}

// ClaimedBy returns the process that claimed the move last.
func (s *State) ClaimedBy() string { return s.Holder }

// Apply applies an event that was decided at the given time. It accepts any event in any state,
// because an event in the log has happened.
func (s *State) Apply(e Event, at time.Time) {
	switch e.(type) {
	case TransientFailure, Claimed, AbortRequested, AbortRefused:
	default:
		s.TransientFailure, s.TransientFailureSince = TransientFailure{}, time.Time{} // the move has progressed
	}
	switch e := e.(type) {
	case Requested:
		*s = State{Spec: e.Spec, Home: e.Home, MarkLog: e.Home.Log, StartedAt: at}
		s.enter(PhasePending, at)
	case Claimed:
		s.Holder, s.ClaimedAt = e.Holder, at
		if s.Phase == PhasePending {
			s.enter(PhasePreflight, at)
		}
	case LogLost:
		s.Lost, s.MarkLog = &e, e.Log
		s.enter(PhaseStranded, at)
	case TraceMissing:
		// The pauses, plan and copies of the older log no longer exist.
		*s = State{
			Spec: s.Spec, Home: s.Home, MarkLog: s.Home.Log, Holder: s.Holder, ClaimedAt: s.ClaimedAt, StartedAt: s.StartedAt,
			Abort: s.Abort, AbortReason: s.AbortReason,
		}
		s.enter(PhasePreflight, at)
	case Resolved:
		s.Way = e.Direction
	case Rebuilt:
		s.applyRebuilt(e.Direction, at)
	case TargetAbandoned:
		s.Abandon, s.RollbackCause = true, "the target was abandoned"
		if e.Reason != "" {
			s.RollbackCause += ": " + e.Reason
		}
	case Abandoned:
		s.Failure = Failed{Message: e.Reason, Next: cmp.Or(e.Next, abandonedAdvice)}
		s.finish(PhaseFailed, at)
	case CreateStarted:
		s.Posted = true
	case PreflightPassed:
		s.Clusters, s.TargetID, s.Findings = e.Clusters, e.TargetID, e.Warnings
		s.Counts.Clusters = len(e.Clusters)
		if s.Spec.DryRun {
			s.enter(PhasePlanned, at)
			return
		}
		s.enter(PhasePausing, at)
	case Refused:
		s.Findings = e.Findings
		s.finish(PhaseFailed, at)
	case BaselineTaken:
		s.Baseline = merge(s.Baseline, e.Objects)
		if len(e.AckKinds) > 0 {
			s.AckKinds = e.AckKinds
		}
		s.Counts.Objects = len(s.Baseline)
	case PauseIntended:
		if e.Part == 0 {
			s.Roots = nil
			if s.Way != "" {
				s.Created, s.Adopted = nil, nil // the next events were read from the clusters, and replace the log's
			}
		}
		s.Roots, s.MoreRoots = append(s.Roots, e.Roots...), e.More
	case Paused:
		s.PausedAt = at
		s.enter(PhaseAwaitingAcks, at)
	case Acknowledged:
		s.Acks = merge(s.Acks, e.Objects)
		s.Counts.Acknowledged = len(s.Acks)
		s.Counts.Objects = max(s.Counts.Objects, len(s.Acks))
	case Waiting:
		s.Waiting, s.WaitingTotal, s.WaitingSince = e.For, e.Total, at
	case AllAcknowledged:
		s.enter(PhasePlanned, at)
	case PlanDrafted:
		if e.First {
			s.Draft = nil
		}
		s.Draft = append(s.Draft, e.Items...)
	case Planned:
		s.applyPlanned(e, at)
	case Created:
		s.Posted = true
		s.Created = merge(s.Created, e.Objects)
		s.Adopted = addRefs(s.Adopted, e.Adopted)
		s.Counts.Created = len(s.Created)
		if len(e.Adopted) > 0 {
			s.countPlan()
		}
	case AllCreated:
		s.AllCreated = true
	case Verified:
		s.enter(PhaseVerified, at)
	case Deleted:
		s.Deleted = addRefs(s.Deleted, e.Objects)
		s.Counts.Deleted = len(s.Deleted)
		if s.Phase == PhaseVerified {
			s.enter(PhaseDeleting, at)
		}
	case SourceEmptied:
		s.enter(PhaseResuming, at)
	case PausesRestored:
		s.PausesBack, s.ResumedAt = true, at
	case Resumed:
		s.Resumed = addRefs(s.Resumed, e.Objects)
		s.Counts.Resumed = len(s.Resumed)
	case Succeeded:
		s.finish(PhaseSucceeded, at)
		s.Waiting, s.WaitingTotal, s.StillPausedTotal = e.StillPaused, e.Total, e.Total
	case AbortRequested:
		s.Abort, s.AbortReason = true, e.Reason
	case AbortRefused:
		s.Abort, s.AbortRefused = false, true
	case TransientFailure:
		if s.TransientFailure.Message == "" {
			s.TransientFailureSince = at
		}
		s.TransientFailure = e
	case Failed:
		s.Failure = e
		s.enter(PhaseFailed, at)
	case RollbackStarted:
		s.RollbackCause = e.Reason
		s.enter(PhaseRollingBack, at)
	case Removed:
		s.Removed = addRefs(s.Removed, e.Objects)
	case TargetCleared:
		s.TargetCleared = true
	case RolledBack:
		s.finish(PhaseRolledBack, at)
	}
}

// applyRebuilt makes the move continue in the given direction. It resets the recorded progress,
// because the next steps read it from the clusters.
func (s *State) applyRebuilt(way Direction, at time.Time) {
	s.Lost, s.Way, s.Abort, s.Failure = nil, "", false, Failed{}
	s.Posted, s.AllCreated, s.TargetCleared, s.PausesBack = true, way == Forward, false, false
	s.Deleted, s.Removed, s.Counts.Deleted = nil, nil, 0
	if way == Forward {
		s.enter(PhaseVerified, at)
		return
	}
	s.RollbackCause = "resolved by an operator"
	s.enter(PhaseRollingBack, at)
}

func (s *State) applyPlanned(e Planned, at time.Time) {
	s.Plan, s.PlanHash, s.Left, s.Draft = s.Draft, e.Hash, e.Excluded, nil
	s.Posted = !e.Announced
	s.countPlan()
	if !s.Spec.DryRun {
		s.enter(PhaseCreating, at)
	}
}

// countPlan sets the counts of planned objects. ToResume does not include adopted objects, because
// they were on the target before.
func (s *State) countPlan() {
	s.Counts.Objects, s.Counts.ToDelete, s.Counts.ToResume = len(s.Plan), 0, 0
	for _, item := range s.Plan {
		if item.KeepReason == "" {
			s.Counts.ToDelete++
		}
		if s.MustResume(item) {
			s.Counts.ToResume++
		}
	}
}

// NeedsCopyAck reports whether a controller of the target must acknowledge that the copy of an
// object is paused, before anything is deleted at the source. It must for objects that acknowledged
// the pause at the source by their condition.
func (s *State) NeedsCopyAck(item Item) bool {
	return s.MustResume(item) && s.Acks[item.Ref] == pause.ByCondition
}

// MustResume reports whether the move waits until the copy of an object reports that it is not
// paused. It does not for objects that a user had paused, directly or by their Cluster, because
// they stay paused.
func (s *State) MustResume(item Item) bool {
	how := s.Acks[item.Ref]
	if how != pause.ByCondition && how != pause.Settled {
		return false
	}
	return !s.Adopted[item.Ref] && !item.PausedByUser && !slices.ContainsFunc(s.Roots, func(root pause.Root) bool {
		return root.Found && (root.Ref == item.Ref || pause.IsCluster(root.Ref) && root.Ref.Name == item.Cluster)
	})
}

func (s *State) enter(p Phase, at time.Time) {
	s.Phase, s.PhaseSince = p, at
	s.Waiting, s.WaitingTotal = nil, 0
}

// finish deletes the data that only an unfinished move needs, so that a view of many old moves
// stays small.
func (s *State) finish(p Phase, at time.Time) {
	s.enter(p, at)
	s.FinishedAt = at
	s.Baseline, s.Acks, s.Draft, s.Plan, s.Roots = nil, nil, nil, nil, nil
	s.Created, s.Adopted, s.Deleted, s.Removed, s.Resumed = nil, nil, nil, nil, nil
	s.Left = slices.Clone(s.Left[:min(len(s.Left), maxStatusFindings)]) // the part that the status shows
}

func merge[K comparable, V any](into, from map[K]V) map[K]V {
	if into == nil {
		into = make(map[K]V, len(from))
	}
	maps.Copy(into, from)
	return into
}

func addRefs(into map[object.Ref]bool, refs []object.Ref) map[object.Ref]bool {
	if into == nil && len(refs) > 0 {
		into = make(map[object.Ref]bool, len(refs))
	}
	for _, r := range refs {
		into[r] = true
	}
	return into
}
