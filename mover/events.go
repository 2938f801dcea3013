package mover

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/pause"
)

// Event is one fact about a move.
type Event interface{ event() }

// Spec is what was asked for, pinned in the log by Requested.
type Spec struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Clusters  []string `json:"clusters,omitempty"`
	All       bool     `json:"all,omitempty"`
	// Target is a reference to where the target's kubeconfig is; never the kubeconfig.
	Target      Target   `json:"target"`
	DryRun      bool     `json:"dryRun,omitempty"`
	KeepFailed  bool     `json:"keepFailed,omitempty"` // no rollback on failure
	CarryStatus []string `json:"carryStatus,omitempty"`
	// AcceptLoss lists kinds, as Kind.group, of objects that the source may lose.
	AcceptLoss  []string            `json:"acceptLoss,omitempty"`
	Acknowledge Duration            `json:"acknowledge"`
	AckKinds    map[string]Duration `json:"acknowledgeKinds,omitempty"`
	Create      Duration            `json:"create"`
	Awake       Duration            `json:"awake"`
}

// Target refers to the kubeconfig of the management cluster to move to.
type Target struct {
	SecretName string `json:"secretName"`
	SecretKey  string `json:"secretKey"`
	// AllowInsecure: the kubeconfig may use http, or leave the server's certificate unchecked.
	AllowInsecure bool `json:"allowInsecure,omitempty"`
}

// Duration is a time.Duration that reads and writes as "5m0s".
type Duration = pause.Duration

// Finding is one answer of the preflight.
type Finding struct {
	Severity Severity `json:"severity"`
	Field    string   `json:"field"`
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy"`
}

// Findings are the findings of some checks.
type Findings []Finding

// Fail adds an error.
func (f *Findings) Fail(field, message, remedy string) {
	*f = append(*f, Finding{Error, field, message, remedy})
}

// Warn adds a warning.
func (f *Findings) Warn(field, message, remedy string) {
	*f = append(*f, Finding{Warning, field, message, remedy})
}

// Refuse reports whether any of the findings is an error.
func (f Findings) Refuse() bool {
	return slices.ContainsFunc(f, func(one Finding) bool { return one.Severity == Error })
}

// Way is the direction in which an operator resolves a stranded move.
type Way string

// The ways.
const (
	Forward Way = "forward"
	Back    Way = "back"
)

// Severity of a finding: an Error refuses the move before anything was changed.
type Severity string

// The severities.
const (
	Error   Severity = "Error"
	Warning Severity = "Warning"
)

// Wait is an object and why it is waited for, or why it stays.
type Wait = pause.Wait

// The facts of a move, in the order in which a good one meets them.
type (
	// Requested pins what was asked for.
	Requested struct {
		Spec Spec `json:"spec"`
		Home Home `json:"home,omitzero"`
	}
	// LogLost: the move had begun, and this log does not know how far it came. Nothing is done before an operator has
	// resolved it, unless neither cluster shows a trace of it.
	LogLost struct {
		// Log is the ID of the log that the move was in; empty if it is not known.
		Log string `json:"log,omitempty"`
		// Phase and Sequence are what the Move's status said last.
		Phase    Phase  `json:"phase,omitempty"`
		Sequence uint64 `json:"sequence,omitempty"`
	}
	// TraceMissing: neither cluster shows a trace of a lost move: it begins again.
	TraceMissing struct{}
	// Resolved is an operator's decision about a stranded move.
	Resolved struct {
		Way    Way    `json:"way"`
		Reason string `json:"reason,omitempty"`
	}
	// Rebuilt: what the move must know to go the way that an operator chose was read from both clusters.
	Rebuilt struct {
		Way Way `json:"way"`
	}
	// TargetAbandoned is an operator's decision to end the move without the target.
	TargetAbandoned struct {
		Reason string `json:"reason,omitempty"`
	}
	// Abandoned ends a move whose target was abandoned after the source had begun to be emptied: the source stays paused. With
	// Next, it ends one of which neither cluster has anything.
	Abandoned struct {
		Why  string `json:"why"`
		Next string `json:"next,omitempty"`
	}
	// Claimed fences off every earlier holder: their next append fails.
	Claimed struct {
		Holder string `json:"holder"`
	}
	// PreflightPassed: both sides were checked, and nothing prevents the move.
	PreflightPassed struct {
		Clusters []string `json:"clusters"`
		// Target identifies the cluster that the kubeconfig led to: the UID of its namespace kube-system.
		Target   string    `json:"target,omitempty"`
		Warnings []Finding `json:"warnings,omitempty"`
	}
	// Refused: the preflight found errors; nothing was changed. The move is over.
	Refused struct {
		Findings []Finding `json:"findings"`
	}
	// BaselineTaken: what objects said of being paused just before the pause.
	BaselineTaken struct {
		Objects map[object.Ref]pause.Baseline `json:"objects"`
		// AckKinds are the times that definitions give objects of their kinds to acknowledge, by Kind.group.
		AckKinds map[string]Duration `json:"acknowledgeKinds,omitempty"`
	}
	// PauseIntended: these roots are about to be paused; the state found on them is what they get back in the end. More
	// says that another one follows, which continues it; Part is 0 for the first.
	PauseIntended struct {
		Roots []pause.Root `json:"roots"`
		Part  int          `json:"part,omitempty"`
		More  bool         `json:"more,omitempty"`
	}
	// Paused: the pause is set on every root.
	Paused struct{}
	// Acknowledged: these objects are at rest, and how they said so.
	Acknowledged struct {
		Objects map[object.Ref]pause.Signal `json:"objects"`
	}
	// Waiting: what is missing at the moment, the first few of Total.
	Waiting struct {
		For   []Wait `json:"for"`
		Total int    `json:"total"`
	}
	// AllAcknowledged: every object of the graph is at rest and the graph did not change any more.
	AllAcknowledged struct{}
	// PlanDrafted is a part of the plan; a draft counts once Planned follows it. First starts a new draft.
	PlanDrafted struct {
		First bool   `json:"first,omitempty"`
		Items []Item `json:"items"`
	}
	// Planned: the draft is the plan.
	Planned struct {
		Hash string `json:"hash"`
		Left []Wait `json:"left,omitempty"`
		// Announced: CreateStarted is recorded before the first object is sent to the target.
		Announced bool `json:"announced,omitempty"`
	}
	// CreateStarted: from here on objects of the plan may be on the target.
	CreateStarted struct{}
	// Created: these objects exist on the target now, with their UIDs there.
	Created struct {
		Objects map[object.Ref]types.UID `json:"objects"`
		// Adopted were there before and are the same; they are not ours to remove.
		Adopted []object.Ref `json:"adopted,omitempty"`
	}
	// AllCreated: the whole plan exists on the target.
	AllCreated struct{}
	// Verified is the point of no return: the target holds the plan, the source has not changed since.
	Verified struct{}
	// Deleted: these objects are gone at the source.
	Deleted struct {
		Objects []object.Ref `json:"objects"`
	}
	// SourceEmptied: all that was to go is gone at the source.
	SourceEmptied struct{}
	// PausesRestored: the recorded pause states are set on the target.
	PausesRestored struct{}
	// Awoke: these objects said on the target that they are not paused.
	Awoke struct {
		Objects []object.Ref `json:"objects"`
	}
	// Succeeded ends the move. Asleep are the first objects, of Total, that have not said in time that they resumed.
	Succeeded struct {
		Asleep []Wait `json:"asleep,omitempty"`
		Total  int    `json:"total,omitempty"`
	}

	// AbortRequested is an operator's decision to go back.
	AbortRequested struct {
		Reason string `json:"reason,omitempty"`
	}
	// AbortRefused answers an abort that came too late.
	AbortRefused struct {
		Why string `json:"why"`
	}
	// TransientFailure: a step failed with a transient error; it is tried again.
	TransientFailure struct {
		Message string `json:"message"`
		Next    string `json:"next,omitempty"`
		// Stranded: the state of one of the clusters differs from the log, and to continue could lose an object or
		// leave both clusters active. Nothing is changed until they agree again or a human has decided.
		Stranded bool `json:"stranded,omitempty"`
		// Until is set while a permission is waited for that was granted at the preflight: that is how long.
		Until time.Time `json:"until,omitzero"`
	}
	// Failed: the move cannot continue.
	Failed struct {
		Message string `json:"message"`
		Next    string `json:"next,omitempty"`
	}
	// RollbackStarted: from here on every change is undone.
	RollbackStarted struct {
		Reason string `json:"reason"`
	}
	// Removed: these copies of ours are gone from the target.
	Removed struct {
		Objects []object.Ref `json:"objects"`
	}
	// TargetCleared: no copy of ours is left on the target.
	TargetCleared struct{}
	// RolledBack ends a move that did not happen: the source is as it was found.
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
func (Awoke) event()            {}
func (Succeeded) event()        {}
func (AbortRequested) event()   {}
func (AbortRefused) event()     {}
func (TransientFailure) event() {}
func (Failed) event()           {}
func (RollbackStarted) event()  {}
func (Removed) event()          {}
func (TargetCleared) event()    {}
func (RolledBack) event()       {}

// Home is where a move is driven from. It is pinned in the log when the move is requested: the same name in another
// management cluster, or in another log, means another move.
type Home struct {
	// Cluster is the UID of namespace kube-system of the management cluster that is the source.
	Cluster string `json:"cluster,omitempty"`
	// Log is the ID of the event log.
	Log string `json:"log,omitempty"`
}

// Foreign says why a move is not to be driven from here, and what to do; empty when it is. A move that an older version
// began has no home and is at home everywhere.
func (h Home) Foreign(s *State) (message, next string) {
	switch {
	case h.Cluster != "" && s.Home.Cluster != "" && h.Cluster != s.Home.Cluster:
		return fmt.Sprintf("stranded: another management cluster began it: namespace kube-system has UID %s there and %s here", s.Home.Cluster, h.Cluster),
			"give this management cluster its own event log, on a shared NATS server its own account; the move continues where it began"
	case h.Log != "" && s.Home.Log != "" && h.Log != s.Home.Log:
		return fmt.Sprintf("stranded: it was begun in event log %s, and this one is %s", s.Home.Log, h.Log),
			"run scute on the log in which the move began"
	default:
		return "", ""
	}
}
