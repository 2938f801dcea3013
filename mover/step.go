package mover

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Step names a part of a move that package mover/transfer performs. Each step is idempotent: it
// reads the clusters before it changes them.
type Step string

// The steps. None means that there is nothing to do.
const (
	None           Step = ""
	RunPreflight   Step = "preflight"
	RecordBaseline Step = "record the baseline"
	PauseSource    Step = "pause the source"
	AwaitAcks      Step = "wait for acknowledgements"
	DraftPlan      Step = "draft the plan"
	CreateCopies   Step = "create on the target"
	VerifyCopies   Step = "verify the target"
	DeleteSource   Step = "delete at the source"
	RestorePauses  Step = "restore the pause states"
	AwaitResume    Step = "wait until all objects have resumed"
	ClearTarget    Step = "remove the copies from the target"
	RestoreSource  Step = "restore the source"
	AssessProgress Step = "assess the progress"
	Rebuild        Step = "read the move from both clusters"
	AbandonTarget  Step = "end without the target"
)

// Next returns the step that a state requires.
func Next(s *State) Step {
	switch {
	case s.Finished() || s.Phase == PhasePending:
		return None
	case s.Abandon:
		return AbandonTarget
	case s.Way != "":
		return Rebuild
	case s.Lost != nil:
		return AssessProgress
	}
	switch s.Phase {
	case PhasePreflight:
		return RunPreflight
	case PhasePausing:
		if len(s.Roots) == 0 || s.MoreRoots {
			return RecordBaseline
		}
		return PauseSource
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
		return AwaitResume
	case PhaseRollingBack:
		if !s.TargetCleared {
			return ClearTarget
		}
		return RestoreSource
	default:
		return None
	}
}

// Outcome is the result of a step: one of the types below, or an Event, which is recorded without a
// decision.
type Outcome any

type (
	// Tick is decided before each step. It represents that time has passed, or that an operator may
	// have requested something.
	Tick struct{}
	// PreflightDone is the outcome of RunPreflight.
	PreflightDone struct {
		Clusters []string
		TargetID string
		Findings Findings
	}
	// RebuildDone is the outcome of Rebuild. Created contains the UIDs of the copies.
	RebuildDone struct {
		Clusters []string
		TargetID string
		Roots    []pause.Root
		Items    []Item
		Created  map[object.Ref]types.UID
	}
	// BaselineRead is the outcome of RecordBaseline.
	BaselineRead struct {
		// AckKinds are the acknowledgement timeouts that CustomResourceDefinitions set, by
		// Kind.group.
		AckKinds map[string]Duration
		Objects  map[object.Ref]pause.Baseline
		Roots    []pause.Root
	}
	// AcksRead is the outcome of AwaitAcks.
	AcksRead struct {
		New     map[object.Ref]pause.Signal
		Pending []ObjectReason
		// Stable means that this read was complete and returned the same objects as the previous
		// one.
		Stable bool
	}
	// Drafted is the outcome of DraftPlan.
	Drafted struct {
		Items    []Item
		Excluded []ObjectReason
	}
	// CopiesUnacknowledged is an outcome of VerifyCopies: controllers have not acknowledged the
	// pause of some copies yet.
	CopiesUnacknowledged struct{ Pending []ObjectReason }
	// VerifyDone is the outcome of VerifyCopies.
	VerifyDone struct {
		Differences []ObjectReason
	}
	// ResumeRead is the outcome of AwaitResume.
	ResumeRead struct {
		New     []object.Ref
		Pending []ObjectReason
	}
	// StepFailed is the outcome of a failed step. Final means that a retry cannot help. Stranded
	// means that the clusters differ from the log, so the step changed nothing.
	StepFailed struct {
		Message  string
		Next     string
		Final    bool
		Stranded bool
	}
)
