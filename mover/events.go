package mover

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Event represents one fact about a move.
type Event interface{ event() }

// Spec is the specification of a move, as recorded by Requested.
type Spec struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Clusters  []string `json:"clusters,omitempty"`
	All       bool     `json:"all,omitempty"`
	// Target refers to the target's kubeconfig. It never contains the kubeconfig.
	Target      Target   `json:"target"`
	DryRun      bool     `json:"dryRun,omitempty"`
	KeepFailed  bool     `json:"keepFailed,omitempty"` // no rollback on failure
	CarryStatus []string `json:"carryStatus,omitempty"`
	// AcceptLoss lists the kinds (Kind.group) of objects whose loss the user accepts.
	AcceptLoss  []string            `json:"acceptLoss,omitempty"`
	Acknowledge Duration            `json:"acknowledge"`
	AckKinds    map[string]Duration `json:"acknowledgeKinds,omitempty"`
	Create      Duration            `json:"create"`
	Resume      Duration            `json:"resume"`
}

// Target refers to the kubeconfig of the management cluster to move to.
type Target struct {
	SecretName string `json:"secretName"`
	SecretKey  string `json:"secretKey"`
	// AllowInsecure permits http, and a server certificate that is not verified.
	AllowInsecure bool `json:"allowInsecure,omitempty"`
}

// Duration is a time.Duration that is encoded as "5m0s".
type Duration = pause.Duration

// Finding is a result of the preflight.
type Finding struct {
	Severity Severity `json:"severity"`
	Field    string   `json:"field"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy"`
}

// Findings are results of the preflight.
type Findings []Finding

// AddError adds an error.
func (f *Findings) AddError(field, message, remedy string) {
	*f = append(*f, Finding{Error, field, message, remedy})
}

// AddWarning adds a warning.
func (f *Findings) AddWarning(field, message, remedy string) {
	*f = append(*f, Finding{Warning, field, message, remedy})
}

// HasErrors reports whether any of the findings is an error.
func (f Findings) HasErrors() bool {
	return slices.ContainsFunc(f, func(one Finding) bool { return one.Severity == Error })
}

// Direction is the direction in which a stranded move continues, chosen by an operator.
type Direction string

// The directions.
const (
	Forward Direction = "forward"
	Back    Direction = "back"
)

// Severity is the severity of a finding. An Error refuses the move before it changes anything.
type Severity string

// The severities.
const (
	Error   Severity = "Error"
	Warning Severity = "Warning"
)

// ObjectReason is an object with a reason, for example why the move waits for the object or does
// not copy it.
type ObjectReason = pause.PendingObject

// The events of a move, in the order of a move without failures.
type (
	// Requested starts a move.
	Requested struct {
		Spec Spec `json:"spec"`
		Home Home `json:"home,omitzero"`
	}
	// LogLost records that this log does not contain the progress of the move. The move waits for
	// an operator's resolution, unless neither cluster has a trace of the move.
	LogLost struct {
		// Log is the ID of the log that contained the progress; empty if it is unknown.
		Log string `json:"log,omitempty"`
		// Phase and Sequence come from the Move's status.
		Phase    Phase  `json:"phase,omitempty"`
		Sequence uint64 `json:"sequence,omitempty"`
	}
	// TraceMissing records that neither cluster has a trace of a lost move, so the move restarts.
	TraceMissing struct{}
	// Resolved is an operator's decision about a stranded move.
	Resolved struct {
		Direction Direction `json:"direction"`
		Reason    string    `json:"reason,omitempty"`
	}
	// Rebuilt records that the state for the chosen direction was read from both clusters.
	Rebuilt struct {
		Direction Direction `json:"direction"`
	}
	// TargetAbandoned is an operator's decision to end the move without the target.
	TargetAbandoned struct {
		Reason string `json:"reason,omitempty"`
	}
	// Abandoned ends a move whose target was abandoned after deletion at the source had begun; the
	// source stays paused. If Next is set, it ends a move whose objects or end cannot be
	// determined.
	Abandoned struct {
		Reason string `json:"reason"`
		Next   string `json:"next,omitempty"`
	}
	// Claimed records that a process from now on drives the move. The next append of any earlier
	// holder fails.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// PreflightPassed records that the preflight found no errors.
	PreflightPassed struct {
		Clusters []string `json:"clusters"`
		// TargetID is the UID of the target's namespace kube-system.
		TargetID string    `json:"target,omitempty"`
		Warnings []Finding `json:"warnings,omitempty"`
	}
	// Refused ends a move for which the preflight found errors. Nothing was changed.
	Refused struct {
		Findings []Finding `json:"findings"`
	}
	// BaselineTaken records the pause state that objects reported just before the move paused them.
	BaselineTaken struct {
		Objects map[object.Ref]pause.Baseline `json:"objects"`
		// AckKinds are the acknowledgement timeouts that CustomResourceDefinitions set, by
		// Kind.group.
		AckKinds map[string]Duration `json:"acknowledgeKinds,omitempty"`
	}
	// PauseIntended records roots that are about to be paused, and the pause state to restore at
	// the end. More means that another PauseIntended continues the list. Part is 0 in the first
	// one.
	PauseIntended struct {
		Roots []pause.Root `json:"roots"`
		Part  int          `json:"part,omitempty"`
		More  bool         `json:"more,omitempty"`
	}
	// Paused records that every root is paused.
	Paused struct{}
	// Acknowledged records which objects have acknowledged the pause, and how.
	Acknowledged struct {
		Objects map[object.Ref]pause.Signal `json:"objects"`
	}
	// Waiting lists the first of Total objects that the move waits for.
	Waiting struct {
		For   []ObjectReason `json:"for"`
		Total int            `json:"total"`
	}
	// AllAcknowledged records that every object has acknowledged the pause and the graph is stable.
	AllAcknowledged struct{}
	// PlanDrafted records a part of the plan, which takes effect with Planned. First means that the
	// part begins a new draft.
	PlanDrafted struct {
		First bool   `json:"first,omitempty"`
		Items []Item `json:"items"`
	}
	// Planned records that the draft is complete and becomes the plan.
	Planned struct {
		Hash     string         `json:"hash"`
		Excluded []ObjectReason `json:"excluded,omitempty"`
		// Announced means that CreateStarted precedes the first object sent to the target.
		Announced bool `json:"announced,omitempty"`
	}
	// CreateStarted records that the target may have objects of the plan from now on.
	CreateStarted struct{}
	// Created records objects on the target, with their UIDs there.
	Created struct {
		Objects map[object.Ref]types.UID `json:"objects"`
		// Adopted contains objects that existed on the target before the move, with the same
		// content. A rollback keeps them.
		Adopted []object.Ref `json:"adopted,omitempty"`
	}
	// AllCreated records that the target has the whole plan.
	AllCreated struct{}
	// Verified is the point of no return. It records that the target has all planned objects, and
	// that the source has not changed since the plan was made.
	Verified struct{}
	// Deleted records objects that no longer exist at the source.
	Deleted struct {
		Objects []object.Ref `json:"objects"`
	}
	// SourceEmptied records that everything to delete at the source is deleted.
	SourceEmptied struct{}
	// PausesRestored records that the target has the pause states recorded at the source.
	PausesRestored struct{}
	// Resumed records objects whose copies report that they are not paused.
	Resumed struct {
		Objects []object.Ref `json:"objects"`
	}
	// Succeeded ends the move. StillPaused contains the first of Total objects that did not resume
	// in time.
	Succeeded struct {
		StillPaused []ObjectReason `json:"stillPaused,omitempty"`
		Total       int            `json:"total,omitempty"`
	}

	// AbortRequested is an operator's request to roll back.
	AbortRequested struct {
		Reason string `json:"reason,omitempty"`
	}
	// AbortRefused records that an abort was too late.
	AbortRefused struct {
		Reason string `json:"reason"`
	}
	// TransientFailure records that a step failed and is retried.
	TransientFailure struct {
		Message string `json:"message"`
		Next    string `json:"next,omitempty"`
		// Stranded means that a cluster differs from the log, so that continuing could lose an
		// object or leave both clusters active. The move changes nothing until the cluster and the
		// log agree or an operator decides.
		Stranded bool `json:"stranded,omitempty"`
	}
	// Failed records that the move cannot continue.
	Failed struct {
		Message string `json:"message"`
		Next    string `json:"next,omitempty"`
	}
	// RollbackStarted records that the move undoes its changes from now on.
	RollbackStarted struct {
		Reason string `json:"reason"`
	}
	// Removed records copies that were deleted on the target.
	Removed struct {
		Objects []object.Ref `json:"objects"`
	}
	// TargetCleared records that the target has no copies left.
	TargetCleared struct{}
	// RolledBack ends a move whose source is restored.
	RolledBack struct{}
)

func (Requested) event()        {}
func (LogLost) event()          {}
func (TraceMissing) event()     {}
func (Resolved) event()         {}
func (Rebuilt) event()          {}
func (TargetAbandoned) event()  {}
func (Abandoned) event()        {}
func (CreateStarted) event()    {}
func (Claimed) event()          {}
func (PreflightPassed) event()  {}
func (Refused) event()          {}
func (BaselineTaken) event()    {}
func (PauseIntended) event()    {}
func (Paused) event()           {}
func (Acknowledged) event()     {}
func (Waiting) event()          {}
func (AllAcknowledged) event()  {}
func (PlanDrafted) event()      {}
func (Planned) event()          {}
func (Created) event()          {}
func (AllCreated) event()       {}
func (Verified) event()         {}
func (Deleted) event()          {}
func (SourceEmptied) event()    {}
func (PausesRestored) event()   {}
func (Resumed) event()          {}
func (Succeeded) event()        {}
func (AbortRequested) event()   {}
func (AbortRefused) event()     {}
func (TransientFailure) event() {}
func (Failed) event()           {}
func (RollbackStarted) event()  {}
func (Removed) event()          {}
func (TargetCleared) event()    {}
func (RolledBack) event()       {}

// Home identifies the management cluster and the log in which a move was requested. A Move with the
// same name in another management cluster or log is another move.
type Home struct {
	// Cluster is the UID of the source's namespace kube-system.
	Cluster string `json:"cluster,omitempty"`
	Log     string `json:"log,omitempty"`
}

// Mismatch returns why a process with this Home must not run a move, and what to do, or "" if it
// may. A local run has no Home and may run any move.
func (h Home) Mismatch(s *State) (message, next string) {
	switch {
	case h.Cluster != "" && s.Home.Cluster != "" && h.Cluster != s.Home.Cluster:
		return fmt.Sprintf("stranded: another management cluster started this move: namespace kube-system has UID %s there and %s here", s.Home.Cluster,
				h.Cluster),
			"give this management cluster its own event log, or its own account on a shared NATS server; the move continues in the cluster that started it"
	case h.Log != "" && s.Home.Log != "" && h.Log != s.Home.Log:
		return fmt.Sprintf("stranded: the move was started in event log %s, but this is event log %s", s.Home.Log, h.Log),
			"run scute with the event log in which the move was started"
	default:
		return "", ""
	}
}
