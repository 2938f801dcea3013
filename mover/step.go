package mover

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Step is an effect to perform. Each step is idempotent: it reads the clusters before it changes them.
type Step string

// The steps. None means that there is nothing to do (now or ever).
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

// Next returns the step that a state requires.
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

// Outcome is the result of a step, or of the passing of time. A step that needs no further decision returns its event as the outcome.
type Outcome interface{ outcome() }

type (
	// Tick means that no step was performed; time has passed, or an operator has requested something.
	Tick struct{}
	// PreflightDone is the outcome of RunPreflight.
	PreflightDone struct {
		Clusters []string
		Target   string
		Findings Findings
	}
	// OwnMarkSeen is an outcome of RunPreflight and TakeBaseline: this move has paused the source, and the log does not contain that.
	OwnMarkSeen struct{}
	// WorldRead is the outcome of Rebuild: the paused roots, the copied objects, and the UIDs of the copies.
	WorldRead struct {
		Clusters []string
		Target   string
		Roots    []pause.Root
		Items    []Item
		Created  map[object.Ref]types.UID
	}
	// NothingLeft is an outcome of Rebuild: neither cluster has an object of the move.
	NothingLeft struct{}
	// SourceKept is an outcome of LeaveTarget: objects of the source were deleted, so it stays paused.
	SourceKept struct{ Why string }
	// CreateStarts is an outcome of CreateCopies: nothing was sent yet.
	CreateStarts struct{}
	// BaselineSeen is the outcome of TakeBaseline.
	BaselineSeen struct {
		// AckKinds are the acknowledgement timeouts that CustomResourceDefinitions set for objects of their kinds, by Kind.group.
		AckKinds map[string]Duration
		Objects  map[object.Ref]pause.Baseline
		Roots    []pause.Root
	}
	// AcksSeen is the outcome of AwaitAcks: one read of all objects.
	AcksSeen struct {
		New     map[object.Ref]pause.Signal
		Pending []Wait
		// Stable means that this read returned the whole graph, and the same objects as the previous read.
		Stable bool
	}
	// Drafted is the outcome of DraftPlan.
	Drafted struct {
		Items []Item
		Left  []Wait
	}
	// CopiesUnseen is an outcome of VerifyCopies: the target's controllers have not acknowledged yet that some copies are paused.
	CopiesUnseen struct{ Pending []Wait }
	// VerifyDone is the outcome of VerifyCopies.
	VerifyDone struct {
		Differences []Wait
	}
	// AwakeSeen is the outcome of AwaitAwake: one read of all objects.
	AwakeSeen struct {
		New     []object.Ref
		Pending []Wait
	}
	// StepFailed is the outcome of a step that failed. Final means that a retry cannot help. Stranded means that the clusters differ from the log, so
	// the step changed nothing. Unpermitted means that an API server denied a permission that it had granted at the preflight.
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
