package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MoveSpec asks for Cluster API clusters of the Move's own namespace to be moved from the management cluster that the
// Move lives in to another one. Everything but abort and abandonTarget is fixed once the Move exists.
//
// +kubebuilder:validation:XValidation:rule="self.target == oldSelf.target",fieldPath=".target",message="target cannot be changed: abort this Move and make another"
// +kubebuilder:validation:XValidation:rule="self.selection == oldSelf.selection",fieldPath=".selection",message="selection cannot be changed: abort this Move and make another"
// +kubebuilder:validation:XValidation:rule="has(self.timeouts) == has(oldSelf.timeouts) && (!has(self.timeouts) || self.timeouts == oldSelf.timeouts)",fieldPath=".timeouts",message="timeouts cannot be changed: abort this Move and make another"
// +kubebuilder:validation:XValidation:rule="self.?dryRun.orValue(false) == oldSelf.?dryRun.orValue(false)",fieldPath=".dryRun",message="dryRun cannot be changed: make another Move"
// +kubebuilder:validation:XValidation:rule="has(self.rollbackOnFailure) == has(oldSelf.rollbackOnFailure) && (!has(self.rollbackOnFailure) || self.rollbackOnFailure == oldSelf.rollbackOnFailure)",fieldPath=".rollbackOnFailure",message="rollbackOnFailure cannot be changed: abort this Move and make another"
// +kubebuilder:validation:XValidation:rule="has(self.carryStatus) == has(oldSelf.carryStatus) && (!has(self.carryStatus) || self.carryStatus == oldSelf.carryStatus)",fieldPath=".carryStatus",message="carryStatus cannot be changed: abort this Move and make another"
// +kubebuilder:validation:XValidation:rule="has(self.acceptLoss) == has(oldSelf.acceptLoss) && (!has(self.acceptLoss) || self.acceptLoss == oldSelf.acceptLoss)",fieldPath=".acceptLoss",message="acceptLoss cannot be changed: abort this Move and make another"
// +kubebuilder:validation:XValidation:rule="self.?abort.orValue(false) || !oldSelf.?abort.orValue(false)",fieldPath=".abort",message="abort cannot be taken back: make another Move"
// +kubebuilder:validation:XValidation:rule="self.?abandonTarget.orValue(false) || !oldSelf.?abandonTarget.orValue(false)",fieldPath=".abandonTarget",message="abandonTarget cannot be taken back: make another Move"
type MoveSpec struct {
	// Target is the management cluster to move to.
	// +required
	Target MoveTarget `json:"target"`

	// Selection says which clusters of this namespace are moved.
	// +required
	Selection MoveSelection `json:"selection"`

	// Timeouts bound the waiting; each has a default.
	// +optional
	Timeouts MoveTimeouts `json:"timeouts,omitzero"`

	// DryRun runs the preflight and computes the plan, and changes nothing on either side.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// RollbackOnFailure removes what was created on the target and restores the source's pause state when the move
	// fails before its point of no return (Verified). False leaves everything as it is, paused, for a human.
	// +optional
	// +kubebuilder:default=true
	RollbackOnFailure *bool `json:"rollbackOnFailure,omitempty"`

	// CarryStatus lists kinds, as Kind.group, whose status is written on the target too. Most controllers rebuild
	// status from the world and need none of it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	CarryStatus []string `json:"carryStatus,omitempty"`

	// AcceptLoss lists kinds, as Kind.group, of objects that the move may destroy because they cannot be moved: a hosted control
	// plane, or what belongs to one, such as StatefulSet.apps. Without it such a move is refused.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	AcceptLoss []string `json:"acceptLoss,omitempty"`

	// Abort asks for the move to be rolled back. It is refused once the move is Verified: from there only forward.
	// +optional
	Abort bool `json:"abort,omitempty"`

	// AbandonTarget ends the move without the target, for a target that is gone for good. The source is resumed if it still
	// holds everything; else it stays paused. Copies that the move made may be on the target: should it come back, they
	// must be deleted there, without their finalizers, and never be unpaused.
	// +optional
	AbandonTarget bool `json:"abandonTarget,omitempty"`
}

// MoveTarget names the management cluster to move to.
type MoveTarget struct {
	// KubeconfigSecretRef is a Secret in the Move's namespace that holds a kubeconfig for the target.
	// +required
	KubeconfigSecretRef SecretKeyRef `json:"kubeconfigSecretRef"`
	// AllowInsecure accepts a kubeconfig whose server is reached by http, or whose certificate is not checked
	// (insecure-skip-tls-verify). The private keys of the clusters can then be read on the way.
	// +optional
	AllowInsecure bool `json:"allowInsecure,omitempty"`
}

// SecretKeyRef names one key of a Secret in the same namespace.
type SecretKeyRef struct {
	// Name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Key in the Secret's data.
	// +optional
	// +kubebuilder:default=value
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// MoveSelection names clusters, or all of the namespace.
//
// +kubebuilder:validation:XValidation:rule="(has(self.clusters) && size(self.clusters) > 0) != (has(self.all) && self.all)",message="set either clusters (a list of Cluster names) or all: true"
type MoveSelection struct {
	// Clusters are names of Clusters in the Move's namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Clusters []string `json:"clusters,omitempty"`
	// All moves every Cluster of the namespace and what is movable beside them.
	// +optional
	All bool `json:"all,omitempty"`
}

// MoveTimeouts bound how long a move waits. A timeout before Verified fails the move (and rolls it back); after
// Verified a move never gives up before the source is empty and the target is resumed.
type MoveTimeouts struct {
	// Acknowledge bounds the wait until every object's controller has said that it is paused.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Acknowledge *Duration `json:"acknowledge,omitempty"`
	// AcknowledgeKinds overrides Acknowledge for single kinds, by Kind.group.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(kind, kind.matches('^(Secret|ConfigMap|[A-Z][A-Za-z0-9]*([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+)$'))",message="acknowledgeKinds must be keyed by Kind.group, such as Machine.cluster.x-k8s.io, or by Secret or ConfigMap"
	// +kubebuilder:validation:XValidation:rule="self.all(kind, self[kind].matches('[1-9]'))",message="each of acknowledgeKinds must be more than 0"
	AcknowledgeKinds map[string]Duration `json:"acknowledgeKinds,omitempty"`
	// Create bounds the creation of all objects on the target.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Create *Duration `json:"create,omitempty"`
	// Awake bounds the wait until every object has said on the target that it resumed. After it the move ends: its status
	// names the objects that have not said so.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Awake *Duration `json:"awake,omitempty"`
}

// MovePhase is the progress of a move.
// +kubebuilder:validation:Enum=Pending;Preflight;Pausing;AwaitingAcks;Planned;Creating;Verified;Deleting;Resuming;Succeeded;RollingBack;RolledBack;Failed;Stranded
type MovePhase string

// MoveStatus is the log's view of the move.
type MoveStatus struct {
	// ObservedGeneration is the generation of the spec that the log has taken note of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// MoveID names the move in the log and on the objects that it creates.
	// +optional
	MoveID string `json:"moveID,omitempty"`
	// LogID is the ID of the event log that the move began in, as on its marks in both clusters. Another log drives it only after the
	// move was resolved.
	// +optional
	LogID string `json:"logID,omitempty"`
	// +optional
	Phase MovePhase `json:"phase,omitempty"`
	// Stranded says that the clusters differ from the event log, so that to continue could lose an object or leave both
	// clusters active. The move changes nothing until they agree again, or until the user has done what next says.
	// +optional
	Stranded bool `json:"stranded,omitempty"`
	// Message says in one sentence what happens now or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a human can do now; empty when nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// PhaseSince is when the current phase began.
	// +optional
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Clusters are the names of the Clusters that a selection of all came to at the preflight, the first thousand.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// +optional
	Counts MoveCounts `json:"counts,omitzero"`
	// WaitingFor names what the move waits for, the first twenty.
	// +optional
	// +listType=atomic
	WaitingFor []MoveWaiting `json:"waitingFor,omitempty"`
	// Findings are the preflight's answers, the first fifty.
	// +optional
	// +listType=atomic
	Findings []MoveFinding `json:"findings,omitempty"`
	// NotMoved names objects of the namespace that stay, and why, the first fifty.
	// +optional
	// +listType=atomic
	NotMoved []MoveWaiting `json:"notMoved,omitempty"`
	// LogSequence is the sequence of the move's last commit that this status reflects, in the event log that logID names. It is
	// absent while logID names a log that was lost.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MoveCounts counts objects.
type MoveCounts struct {
	// Clusters selected.
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// Objects in the plan; before there is a plan, those that must acknowledge the pause.
	// +optional
	Objects int `json:"objects,omitempty"`
	// Acknowledged the pause.
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// Created on the target, or found there and taken as they are.
	// +optional
	Created int `json:"created,omitempty"`
	// ToDelete at the source.
	// +optional
	ToDelete int `json:"toDelete,omitempty"`
	// Deleted at the source.
	// +optional
	Deleted int `json:"deleted,omitempty"`
	// ToAwake is how many objects are to say on the target that they are no longer paused.
	// +optional
	ToAwake int `json:"toAwake,omitempty"`
	// Awake have said so.
	// +optional
	Awake int `json:"awake,omitempty"`
}

// MoveWaiting is an object and a reason.
type MoveWaiting struct {
	// Object as Kind.group namespace/name.
	Object string `json:"object"`
	Why    string `json:"why"`
}

// MoveFinding is one answer of the preflight.
type MoveFinding struct {
	// Severity Error stops the move before anything was changed; Warning does not.
	// +kubebuilder:validation:Enum=Error;Warning
	Severity string `json:"severity"`
	// Field of the spec, or the object, that the finding is about.
	Field   string `json:"field"`
	Message string `json:"message"`
	// Remedy is what to do about it.
	Remedy string `json:"remedy"`
}

// Move moves Cluster API clusters to another management cluster, with acknowledged pauses and a journal in the event
// log, so that it survives being killed at any instant.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=scute;cluster-api,shortName=mv
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.counts.clusters`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.counts.objects`
// +kubebuilder:printcolumn:name="Created",type=integer,JSONPath=`.status.counts.created`
// +kubebuilder:printcolumn:name="Deleted",type=integer,JSONPath=`.status.counts.deleted`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type Move struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MoveSpec `json:"spec"`
	// +optional
	Status MoveStatus `json:"status,omitempty"`

	// Unreadable is what could not be read of it; it is not of the resource.
	Unreadable `json:"-"`
}

// MoveList is a list of Moves.
//
// +kubebuilder:object:root=true
type MoveList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Move `json:"items"`
}
