package mover

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Step is an effect that is due. Each is idempotent: it observes, then acts, so that it may be performed any number of
// times.
type Step string

// The steps. None says that there is nothing to do (now or ever).
const (
	None          Step = ""
	RunPreflight  Step = "preflight"
	TakeBaseline  Step = "take the baseline"
	SetPause      Step = "pause the source"
	AwaitAcks     Step = "await acknowledgements"
	DraftPlan     Step = "draft the plan"
	CreateCopies  Step = "create on the target"
	VerifyCopies  Step = "verify the target"
	DeleteSource  Step = "delete at the source"
	RestorePauses Step = "restore the pause states"
	AwaitAwake    Step = "await that all is awake"
	ClearTarget   Step = "remove the copies from the target"
	RestoreSource Step = "restore the source"
	AssessWorld   Step = "find out how far it came"
	Rebuild       Step = "read the move from both clusters"
	LeaveTarget   Step = "end without the target"
)

// Next is the step that a state calls for.
func Next(s *State) Step {
	switch {
	case s.Finished() || s.Phase == PhasePending:
		return None
	case s.Abandon:
		return LeaveTarget
	case s.Way != "":
		return Rebuild
	case s.Lost != nil:
		return AssessWorld
	}
	switch s.Phase {
	case PhasePreflight:
		return RunPreflight
	case PhasePausing:
		if len(s.Roots) == 0 || s.MoreRoots {
			return TakeBaseline
		}
		return SetPause
	case PhaseAwaitingAcks:
		return AwaitAcks
	case PhasePlanned:
		return DraftPlan
	case PhaseCreating:
		if s.AllCreated {
			return VerifyCopies
		}
		return CreateCopies
	case PhaseVerified, PhaseDeleting:
		return DeleteSource
	case PhaseResuming:
		if !s.PausesBack {
			return RestorePauses
		}
		return AwaitAwake
	case PhaseRollingBack:
		if !s.TargetCleared {
			return ClearTarget
		}
		return RestoreSource
	default:
		return None
	}
}

// Outcome is the result of a step, or of time passing. An event that a step completes, or a part of it as it comes, is its outcome:
// nothing is decided about it.
type Outcome interface{ outcome() }

type (
	// Tick: nothing was performed; only time, or an operator's request, has moved on.
	Tick struct{}
	// PreflightDone of RunPreflight.
	PreflightDone struct {
		Clusters []string
		Target   string
		Findings Findings
	}
	// OwnMarkSeen of RunPreflight or TakeBaseline: the source was paused by this very move, and the log knows nothing of it.
	OwnMarkSeen struct{}
	// WorldRead of Rebuild: the roots that are paused, what was copied, and the UIDs of the copies.
	WorldRead struct {
		Clusters []string
		Target   string
		Roots    []pause.Root
		Items    []Item
		Created  map[object.Ref]types.UID
	}
	// NothingLeft of Rebuild: neither cluster has anything of the move.
	NothingLeft struct{}
	// SourceKept of LeaveTarget: the source has begun to be emptied, so it stays paused.
	SourceKept struct{ Why string }
	// CreateStarts of CreateCopies: nothing was sent yet.
	CreateStarts struct{}
	// BaselineSeen of TakeBaseline.
	BaselineSeen struct {
		// AckKinds are the times that definitions give objects of their kinds to acknowledge, by Kind.group.
		AckKinds map[string]Duration
		Objects  map[object.Ref]pause.Baseline
		Roots    []pause.Root
	}
	// AcksSeen of AwaitAcks: one look at all objects.
	AcksSeen struct {
		New     map[object.Ref]pause.Signal
		Pending []Wait
		// Stable: this look saw the whole graph, and it is the one that the look before saw.
		Stable bool
	}
	// Drafted of DraftPlan.
	Drafted struct {
		Items []Item
		Left  []Wait
	}
	// CopiesUnseen of VerifyCopies: one look. The controllers of the target have not acknowledged yet that some copies are paused.
	CopiesUnseen struct{ Pending []Wait }
	// VerifyDone of VerifyCopies.
	VerifyDone struct {
		Differences []Wait
	}
	// AwakeSeen of AwaitAwake: one look.
	AwakeSeen struct {
		New     []object.Ref
		Pending []Wait
	}
	// StepFailed: a step could not be performed. Final: trying again cannot help. Stranded: the clusters do not hold what
	// the log says, so the step changed nothing. Unpermitted: an API server denied what it had granted at the preflight.
	StepFailed struct {
		Message     string
		Next        string
		Final       bool
		Stranded    bool
		Unpermitted bool
	}
)

func (Tick) outcome()           {}
func (PreflightDone) outcome()  {}
func (OwnMarkSeen) outcome()    {}
func (WorldRead) outcome()      {}
func (NothingLeft) outcome()    {}
func (SourceKept) outcome()     {}
func (CreateStarts) outcome()   {}
func (BaselineSeen) outcome()   {}
func (AcksSeen) outcome()       {}
func (Drafted) outcome()        {}
func (CopiesUnseen) outcome()   {}
func (VerifyDone) outcome()     {}
func (AwakeSeen) outcome()      {}
func (StepFailed) outcome()     {}
func (TraceMissing) outcome()   {}
func (Paused) outcome()         {}
func (Created) outcome()        {}
func (AllCreated) outcome()     {}
func (Deleted) outcome()        {}
func (SourceEmptied) outcome()  {}
func (PausesRestored) outcome() {}
func (Removed) outcome()        {}
func (TargetCleared) outcome()  {}
func (RolledBack) outcome()     {}
