package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MoveSpec requests that Cluster API clusters of the Move's namespace are moved to another
// management cluster. Only abort and abandonTarget can be changed.
//
// +kubebuilder:validation:XValidation:rule="self.target == oldSelf.target",fieldPath=".target",message="target cannot be changed: abort this Move and create another"
// +kubebuilder:validation:XValidation:rule="self.selection == oldSelf.selection",fieldPath=".selection",message="selection cannot be changed: abort this Move and create another"
// +kubebuilder:validation:XValidation:rule="has(self.timeouts) == has(oldSelf.timeouts) && (!has(self.timeouts) || self.timeouts == oldSelf.timeouts)",fieldPath=".timeouts",message="timeouts cannot be changed: abort this Move and create another"
// +kubebuilder:validation:XValidation:rule="self.?dryRun.orValue(false) == oldSelf.?dryRun.orValue(false)",fieldPath=".dryRun",message="dryRun cannot be changed: create another Move"
// +kubebuilder:validation:XValidation:rule="has(self.rollbackOnFailure) == has(oldSelf.rollbackOnFailure) && (!has(self.rollbackOnFailure) || self.rollbackOnFailure == oldSelf.rollbackOnFailure)",fieldPath=".rollbackOnFailure",message="rollbackOnFailure cannot be changed: abort this Move and create another"
// +kubebuilder:validation:XValidation:rule="has(self.carryStatus) == has(oldSelf.carryStatus) && (!has(self.carryStatus) || self.carryStatus == oldSelf.carryStatus)",fieldPath=".carryStatus",message="carryStatus cannot be changed: abort this Move and create another"
// +kubebuilder:validation:XValidation:rule="has(self.acceptLoss) == has(oldSelf.acceptLoss) && (!has(self.acceptLoss) || self.acceptLoss == oldSelf.acceptLoss)",fieldPath=".acceptLoss",message="acceptLoss cannot be changed: abort this Move and create another"
// +kubebuilder:validation:XValidation:rule="self.?abort.orValue(false) || !oldSelf.?abort.orValue(false)",fieldPath=".abort",message="abort cannot be reverted: create another Move"
// +kubebuilder:validation:XValidation:rule="self.?abandonTarget.orValue(false) || !oldSelf.?abandonTarget.orValue(false)",fieldPath=".abandonTarget",message="abandonTarget cannot be reverted: create another Move"
type MoveSpec struct {
	// Target is the management cluster to move to.
	// +required
	Target MoveTarget `json:"target"`

	// Selection selects the clusters of this namespace to move.
	// +required
	Selection MoveSelection `json:"selection"`

	// Timeouts are the timeouts of the move; each has a default.
	// +optional
	Timeouts MoveTimeouts `json:"timeouts,omitzero"`

	// DryRun runs the preflight checks and computes the plan. It changes nothing in either cluster.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// RollbackOnFailure deletes the objects created on the target, and restores the source's pause
	// state, if the move fails before its point of no return (Verified). If false, everything stays
	// paused as it is until a user acts.
	// +optional
	// +kubebuilder:default=true
	RollbackOnFailure *bool `json:"rollbackOnFailure,omitempty"`

	// CarryStatus lists kinds, as Kind.group, whose status is also written on the target. Most
	// controllers compute the status again and do not need it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	CarryStatus []string `json:"carryStatus,omitempty"`

	// AcceptLoss lists kinds, as Kind.group, of objects that the move may destroy because they
	// cannot be moved: a hosted control plane, or its dependents such as StatefulSet.apps. A move
	// that would destroy other objects is refused.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=316
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	AcceptLoss []string `json:"acceptLoss,omitempty"`

	// Abort requests a rollback of the move. It is refused once the move is Verified, because the
	// move can then only be completed.
	// +optional
	Abort bool `json:"abort,omitempty"`

	// AbandonTarget ends the move without the target, if the target is permanently lost. The source
	// is resumed if it still has all objects; otherwise it stays paused. The target may have copies
	// of the objects. If the target becomes available again, delete these copies there without
	// their finalizers, and never unpause them.
	// +optional
	AbandonTarget bool `json:"abandonTarget,omitempty"`
}

// MoveTarget is the management cluster to move to.
type MoveTarget struct {
	// KubeconfigSecretRef is a Secret in the Move's namespace with a kubeconfig for the target.
	// +required
	KubeconfigSecretRef SecretKeyRef `json:"kubeconfigSecretRef"`
	// AllowInsecure accepts a kubeconfig with an http server or without verification of the
	// server's certificate (insecure-skip-tls-verify). The private keys of the clusters can then be
	// read on the network.
	// +optional
	AllowInsecure bool `json:"allowInsecure,omitempty"`
}

// SecretKeyRef is a reference to one key of a Secret in the same namespace.
type SecretKeyRef struct {
	// Name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Key is a key in the Secret's data.
	// +optional
	// +kubebuilder:default=value
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// MoveSelection selects clusters by name, or all clusters of the namespace.
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
	// All selects every Cluster of the namespace, and all other movable objects in it.
	// +optional
	All bool `json:"all,omitempty"`
}

// MoveTimeouts are the timeouts of a move. A timeout before Verified fails the move and rolls it
// back. After Verified the move continues until the source is empty and the target is resumed.
type MoveTimeouts struct {
	// Acknowledge limits the wait until all objects have acknowledged the pause.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Acknowledge *Duration `json:"acknowledge,omitempty"`
	// AcknowledgeKinds overrides acknowledge for single kinds, by Kind.group.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(kind, kind.matches('^(Secret|ConfigMap|[A-Z][A-Za-z0-9]*([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+)$'))",message="acknowledgeKinds must be keyed by Kind.group, such as Machine.cluster.x-k8s.io, or by Secret or ConfigMap"
	// +kubebuilder:validation:XValidation:rule="self.all(kind, self[kind].matches('[1-9]'))",message="each of acknowledgeKinds must be more than 0"
	AcknowledgeKinds map[string]Duration `json:"acknowledgeKinds,omitempty"`
	// Create limits the creation of all objects on the target.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Create *Duration `json:"create,omitempty"`
	// Resume limits the wait until all objects on the target have resumed. After it the move ends,
	// and its status lists the objects that have not resumed.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Resume *Duration `json:"resume,omitempty"`
}

// MovePhase is the progress of a move.
// +kubebuilder:validation:Enum=Pending;Preflight;Pausing;AwaitingAcks;Planned;Creating;Verified;Deleting;Resuming;Succeeded;RollingBack;RolledBack;Failed;Stranded
type MovePhase string

// MoveStatus is the state of the move in the event log.
type MoveStatus struct {
	// ObservedGeneration is the generation of the spec that the event log has recorded.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// MoveID is the ID of the move in the event log and on the objects that it creates.
	// +optional
	MoveID string `json:"moveID,omitempty"`
	// LogID is the ID of the event log in which the move began. The annotations of the move in both clusters
	// contain it. With another event log, the move continues only after a user has resolved it.
	// +optional
	LogID string `json:"logID,omitempty"`
	// +optional
	Phase MovePhase `json:"phase,omitempty"`
	// Stranded means that the clusters differ from the event log, and continuing could lose an
	// object or leave both clusters active. The move changes nothing until they agree again, or
	// until a user has followed the instructions in next.
	// +optional
	Stranded bool `json:"stranded,omitempty"`
	// Message describes the current state or the result in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a user can do now; empty if nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// PhaseSince is when the current phase began.
	// +optional
	PhaseSince *metav1.Time `json:"phaseSince,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// Clusters are the names of the first thousand Clusters that selection.all selected at the
	// preflight checks.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// +optional
	Counts MoveCounts `json:"counts,omitzero"`
	// WaitingFor lists the first twenty objects that the move waits for.
	// +optional
	// +listType=atomic
	WaitingFor []MoveWaiting `json:"waitingFor,omitempty"`
	// Findings are the first fifty results of the preflight checks.
	// +optional
	// +listType=atomic
	Findings []MoveFinding `json:"findings,omitempty"`
	// NotMoved lists the first fifty objects of the namespace that are not moved, and why.
	// +optional
	// +listType=atomic
	NotMoved []MoveWaiting `json:"notMoved,omitempty"`
	// LogSequence is the sequence of the last commit of the move that this status includes, in the
	// event log logID. It is absent while logID refers to a lost event log.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MoveCounts are numbers of objects.
type MoveCounts struct {
	// Clusters is the number of selected Clusters.
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// Objects is the number of objects in the plan. Before there is a plan, it is the number of
	// objects that must acknowledge the pause.
	// +optional
	Objects int `json:"objects,omitempty"`
	// Acknowledged is the number of objects that have acknowledged the pause.
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// Created is the number of objects created on the target, or found there and not changed.
	// +optional
	Created int `json:"created,omitempty"`
	// ToDelete is the number of objects to delete at the source.
	// +optional
	ToDelete int `json:"toDelete,omitempty"`
	// Deleted is the number of objects deleted at the source.
	// +optional
	Deleted int `json:"deleted,omitempty"`
	// ToResume is the number of objects on the target that must resume.
	// +optional
	ToResume int `json:"toResume,omitempty"`
	// Resumed is the number of these objects that have resumed.
	// +optional
	Resumed int `json:"resumed,omitempty"`
}

// MoveWaiting is an object and a reason.
type MoveWaiting struct {
	// Object as Kind.group namespace/name.
	Object  string `json:"object"`
	Message string `json:"message"`
}

// MoveFinding is a result of the preflight checks.
type MoveFinding struct {
	// Severity is Error, which stops the move before anything is changed, or Warning.
	// +kubebuilder:validation:Enum=Error;Warning
	Severity string `json:"severity"`
	// Field is the field of the spec, or the object, with the finding.
	Field   string `json:"field"`
	Message string `json:"message"`
	// Remedy describes how to fix the finding.
	Remedy string `json:"remedy"`
}

// Move moves Cluster API clusters to another management cluster. It waits until their controllers
// have acknowledged that they are paused, and records each step in the event log, so that the move
// continues after a crash at any point.
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

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
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
