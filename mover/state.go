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
	PhaseStranded     Phase = "Stranded" // the log does not know how far the move came
)

// State is a move as recorded by its events. The zero value is a move that was not requested.
type State struct {
	Spec Spec
	Home Home
	// MarkLog is the ID of the log that the move's marks carry: of the one that was lost, if one was.
	MarkLog   string
	Phase     Phase
	Holder    string // who claimed it last
	ClaimedAt time.Time

	Clusters []string
	// TargetID identifies the target: nothing is ever done to another cluster, whatever the kubeconfig says later.
	TargetID string
	Findings []Finding

	pause.State // of the source
	// AckKinds are the times that definitions gave objects of their kinds to acknowledge. Those of the Spec go before them.
	AckKinds map[string]Duration
	// MoreRoots: the list of Roots is not complete yet.
	MoreRoots bool

	Draft    []Item
	Plan     []Item
	PlanHash string
	Left     []Wait

	// Posted says that objects of the plan may be on the target.
	Posted  bool
	Created map[object.Ref]types.UID
	Adopted map[object.Ref]bool
	// AllCreated: the whole plan is on the target, not yet verified.
	AllCreated bool
	Deleted    map[object.Ref]bool
	Removed    map[object.Ref]bool
	Awake      map[object.Ref]bool

	Waiting      []Wait
	WaitingTotal int
	WaitingSince time.Time
	// TransientFailure is why the last attempt of the step failed; empty if it succeeded.
	TransientFailure      string
	TransientFailureNext  string
	TransientFailureSince time.Time
	// TransientFailureUntil is how long the move waits for a permission that was granted at the preflight; zero for other
	// transient failures.
	TransientFailureUntil time.Time
	// Stranded says that the transient failure is a disagreement between the log and the clusters: see TransientFailure.
	Stranded bool
	// Lost is set while the log does not know how far the move came.
	Lost *LogLost
	// Way is how an operator resolved the move, until it was rebuilt.
	Way Way
	// Abandon says that an operator gave the target up.
	Abandon     bool
	Abort       bool
	AbortReason string
	// AbortRefused: an abort came after Verified, and was told so.
	AbortRefused  bool
	Failure       Failed
	RollbackCause string
	TargetCleared bool
	PausesBack    bool
	ResumedAt     time.Time
	// AsleepTotal objects had not said that they resumed when the move ended; Waiting names the first of them.
	AsleepTotal int

	StartedAt  time.Time
	PhaseSince time.Time
	FinishedAt time.Time

	// Counts outlive the maps, which are dropped when the move ends.
	Counts v1alpha1.MoveCounts
}

// Finished says that the move is over and nothing can follow.
func (s *State) Finished() bool { return !s.FinishedAt.IsZero() }

// Verified says that the point of no return is behind: only forward.
func (s *State) Verified() bool {
	switch s.Phase {
	case PhaseVerified, PhaseDeleting, PhaseResuming, PhaseSucceeded:
		return true
	default:
		return false
	}
}

// ClaimedBy is the process that has claimed the move last.
func (s *State) ClaimedBy() string { return s.Holder }

// Apply folds one event, decided at the given time, into the state. It accepts any event in any state: what the log
// holds has happened.
func (s *State) Apply(e Event, at time.Time) {
	switch e.(type) {
	case TransientFailure, Claimed, AbortRequested, AbortRefused:
	default:
		s.TransientFailure, s.TransientFailureNext, s.TransientFailureSince, s.Stranded = "", "", time.Time{}, false // something progressed
		s.TransientFailureUntil = time.Time{}
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
		// What an older log knew of pauses, plan and copies is no longer true.
		*s = State{
			Spec: s.Spec, Home: s.Home, MarkLog: s.Home.Log, Holder: s.Holder, ClaimedAt: s.ClaimedAt, StartedAt: s.StartedAt,
			Abort: s.Abort, AbortReason: s.AbortReason,
		}
		s.enter(PhasePreflight, at)
	case Resolved:
		s.Way = e.Way
	case Rebuilt:
		s.rebuilt(e.Way, at)
	case TargetAbandoned:
		s.Abandon, s.RollbackCause = true, "the target was abandoned"
		if e.Reason != "" {
			s.RollbackCause += ": " + e.Reason
		}
	case Abandoned:
		s.Failure = Failed{Message: e.Why, Next: cmp.Or(e.Next, abandonedNext)}
		s.finish(PhaseFailed, at)
	case CreateStarted:
		s.Posted = true
	case PreflightPassed:
		s.Clusters, s.TargetID, s.Findings = e.Clusters, e.Target, e.Warnings
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
				s.Created, s.Adopted = nil, nil // what follows was read from the clusters, and replaces what the log knew
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
		s.planned(e, at)
	case Created:
		s.Posted = true
		s.Created = merge(s.Created, e.Objects)
		s.Adopted = mark(s.Adopted, e.Adopted)
		s.Counts.Created = len(s.Created)
		if len(e.Adopted) > 0 {
			s.countPlan()
		}
	case AllCreated:
		s.AllCreated = true
	case Verified:
		s.enter(PhaseVerified, at)
	case Deleted:
		s.Deleted = mark(s.Deleted, e.Objects)
		s.Counts.Deleted = len(s.Deleted)
		if s.Phase == PhaseVerified {
			s.enter(PhaseDeleting, at)
		}
	case SourceEmptied:
		s.enter(PhaseResuming, at)
	case PausesRestored:
		s.PausesBack, s.ResumedAt = true, at
	case Awoke:
		s.Awake = mark(s.Awake, e.Objects)
		s.Counts.Awake = len(s.Awake)
	case Succeeded:
		s.finish(PhaseSucceeded, at)
		s.Waiting, s.WaitingTotal, s.AsleepTotal = e.Asleep, e.Total, e.Total
	case AbortRequested:
		s.Abort, s.AbortReason = true, e.Reason
	case AbortRefused:
		s.Abort, s.AbortRefused = false, true
	case TransientFailure:
		if s.TransientFailure == "" {
			s.TransientFailureSince = at
		}
		s.TransientFailure, s.TransientFailureNext, s.Stranded, s.TransientFailureUntil = e.Message, e.Next, e.Stranded, e.Until
	case Failed:
		s.Failure = e
		s.enter(PhaseFailed, at)
	case RollbackStarted:
		s.RollbackCause = e.Reason
		s.enter(PhaseRollingBack, at)
	case Removed:
		s.Removed = mark(s.Removed, e.Objects)
	case TargetCleared:
		s.TargetCleared = true
	case RolledBack:
		s.finish(PhaseRolledBack, at)
	}
}

// rebuilt takes up the move where an operator's decision leads; what had been done that way is seen in the clusters.
func (s *State) rebuilt(way Way, at time.Time) {
	s.Lost, s.Way, s.Abort, s.Failure = nil, "", false, Failed{}
	s.Posted, s.AllCreated, s.TargetCleared, s.PausesBack = true, way == Forward, false, false
	s.Deleted, s.Removed, s.Counts.Deleted = nil, nil, 0
	if way == Forward {
		s.enter(PhaseVerified, at)
		return
	}
	s.RollbackCause = "an operator resolved it"
	s.enter(PhaseRollingBack, at)
}

func (s *State) planned(e Planned, at time.Time) {
	s.Plan, s.PlanHash, s.Left, s.Draft = s.Draft, e.Hash, e.Left, nil
	s.Posted = !e.Announced
	s.countPlan()
	if !s.Spec.DryRun {
		s.enter(PhaseCreating, at)
	}
}

// countPlan counts what the plan asks for. What turns out to be on the target already need not wake there.
func (s *State) countPlan() {
	s.Counts.Objects, s.Counts.ToDelete, s.Counts.ToAwake = len(s.Plan), 0, 0
	for _, item := range s.Plan {
		if item.Keep == "" {
			s.Counts.ToDelete++
		}
		if s.MustAwake(item) {
			s.Counts.ToAwake++
		}
	}
}

// MustBeSeen says whether a controller of the target is to acknowledge that the copy of an object is paused, before anything is
// deleted at the source: one of a kind that said so at the source.
func (s *State) MustBeSeen(item Item) bool {
	return s.MustAwake(item) && s.Acks[item.Ref] == pause.ByCondition
}

// MustAwake says whether an object is waited for on the target: one that said at the source that it paused because of
// us is to say there that it is not. One that a user had paused stays so, and so does all that hangs on a cluster that
// a user had paused.
func (s *State) MustAwake(item Item) bool {
	how := s.Acks[item.Ref]
	if how != pause.ByCondition && how != pause.Settled {
		return false
	}
	if s.Adopted[item.Ref] || item.Held {
		return false
	}
	for _, root := range s.Roots {
		if root.Found && (root.Ref == item.Ref || (pause.IsCluster(root.Ref) && root.Ref.Name == item.Cluster)) {
			return false
		}
	}
	return true
}

func (s *State) enter(p Phase, at time.Time) {
	s.Phase, s.PhaseSince = p, at
	s.Waiting, s.WaitingTotal = nil, 0
}

// finish ends the move and drops what only an unfinished one needs, so that a view of many old moves stays small.
func (s *State) finish(p Phase, at time.Time) {
	s.enter(p, at)
	s.FinishedAt = at
	s.Baseline, s.Acks, s.Draft, s.Plan, s.Roots = nil, nil, nil, nil, nil
	s.Created, s.Adopted, s.Deleted, s.Removed, s.Awake = nil, nil, nil, nil, nil
	s.Left = slices.Clone(s.Left[:min(len(s.Left), statusFindings)]) // what its status shows
}

func merge[K comparable, V any](into, from map[K]V) map[K]V {
	if into == nil {
		into = make(map[K]V, len(from))
	}
	maps.Copy(into, from)
	return into
}

func mark(into map[object.Ref]bool, refs []object.Ref) map[object.Ref]bool {
	if into == nil && len(refs) > 0 {
		into = make(map[object.Ref]bool, len(refs))
	}
	for _, r := range refs {
		into[r] = true
	}
	return into
}
