package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PauseSpec asks for Cluster API clusters of the Pause's own namespace to be paused for as long as the Pause exists. It is fixed
// once the Pause exists.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec cannot be changed: make another Pause, which may overlap with this one, and then delete this one"
// +kubebuilder:validation:XValidation:rule="(has(self.clusters) && size(self.clusters) > 0) || has(self.selector)",message="set clusters (a list of Cluster names), selector (a label selector), or both"
type PauseSpec struct {
	// Clusters are names of Clusters in the Pause's namespace. One that does not exist yet is paused once it does.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Clusters []string `json:"clusters,omitempty"`
	// Selector chooses Clusters of the namespace by their labels, besides those that are named; an empty one chooses all. One that
	// gets the labels later is paused then. One that loses them stays paused until the Pause is deleted.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="must have at most 32 labels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",fieldPath=".matchExpressions",message="must have at most 32 items"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 64)",fieldPath=".matchExpressions",message="an item must have at most 64 values"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Reason says what the pause is for. It is recorded in the event log.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Timeouts bound the waiting; each has a default.
	// +optional
	Timeouts PauseTimeouts `json:"timeouts,omitzero"`
}

// PauseTimeouts bound how long a Pause waits before it says who does not answer. It never gives up: it continues to look, less
// often, and changes nothing because of a timeout.
type PauseTimeouts struct {
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
	// Awake bounds the wait, after the Pause was deleted and the clusters were restored, until every object has said that it is no
	// longer paused. After it the Pause goes; an event names the objects that have not said so.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Awake *Duration `json:"awake,omitempty"`
}

// PausePhase is the progress of a Pause.
// +kubebuilder:validation:Enum=Pending;Pausing;Acknowledging;TimedOut;Acknowledged;Restoring;Resuming;Released
type PausePhase string

// The phases of a Pause.
const (
	// PausePending: a daemon has not begun it.
	PausePending PausePhase = "Pending"
	// PausePausing: the pause is not set on every Cluster yet.
	PausePausing PausePhase = "Pausing"
	// PauseAcknowledging: the pause is set, and not every object has acknowledged it.
	PauseAcknowledging PausePhase = "Acknowledging"
	// PauseTimedOut: an object did not acknowledge in time. It is still looked at.
	PauseTimedOut PausePhase = "TimedOut"
	// PauseAcknowledged: every object is at rest.
	PauseAcknowledged PausePhase = "Acknowledged"
	// PauseRestoring: the Pause was deleted, and the pause states that were found are restored.
	PauseRestoring PausePhase = "Restoring"
	// PauseResuming: the clusters are restored, and not every object has said that it is awake.
	PauseResuming PausePhase = "Resuming"
	// PauseReleased: it is over.
	PauseReleased PausePhase = "Released"
)

// PauseStatus is the log's view of the pause.
type PauseStatus struct {
	// ObservedGeneration is the generation of the spec that the log has taken note of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// PauseID names the pause in the log.
	// +optional
	PauseID string `json:"pauseID,omitempty"`
	// +optional
	Phase PausePhase `json:"phase,omitempty"`
	// Message says in one sentence what happens now.
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
	// FinishedAt is when the clusters were restored and awake, or said not to be.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// +optional
	Counts PauseCounts `json:"counts,omitzero"`
	// Clusters are those that the Pause holds, the first hundred.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Clusters []PauseCluster `json:"clusters,omitempty"`
	// Kinds say how the objects of each kind acknowledged, the first hundred.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=100
	Kinds []PauseKind `json:"kinds,omitempty"`
	// WaitingFor names what the Pause waits for, the first twenty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	WaitingFor []PauseWaiting `json:"waitingFor,omitempty"`
	// Unacknowledged names what had not acknowledged the pause when it ended, the first twenty.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Unacknowledged []PauseWaiting `json:"unacknowledged,omitempty"`
	// LogID is the ID of the event log that logSequence counts in.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the sequence of the Pause's last commit that this status reflects.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PauseCounts counts clusters and objects.
type PauseCounts struct {
	// Clusters selected.
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// Objects that must acknowledge.
	// +optional
	Objects int `json:"objects,omitempty"`
	// Acknowledged the pause.
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// Pending have not acknowledged yet, or had not when the pause ended.
	// +optional
	Pending int `json:"pending,omitempty"`
	// Asleep are objects that still call themselves paused after the clusters were restored.
	// +optional
	Asleep int `json:"asleep,omitempty"`
}

// PauseCluster is a Cluster that a Pause holds.
type PauseCluster struct {
	Name string `json:"name"`
	// FoundPaused says that somebody else had paused it before: it stays paused when the Pause is deleted.
	// +optional
	FoundPaused bool `json:"foundPaused,omitempty"`
	// Paused says that the pause is set.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Objects of the Cluster, itself among them, that must acknowledge.
	// +optional
	Objects int `json:"objects,omitempty"`
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// Pending have not acknowledged yet; status.waitingFor names the first of all clusters.
	// +optional
	Pending int `json:"pending,omitempty"`
}

// PauseKind says how the objects of a kind acknowledged.
type PauseKind struct {
	// Kind as Kind.group.
	Kind string `json:"kind"`
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// +optional
	Pending int `json:"pending,omitempty"`
	// Signals are how those that acknowledged did: condition (the condition Paused turned True), already-held (it was True for a
	// pause that was there before), settled (it was True for no known cause, and stayed so), through-owner (no controller acts on
	// it before it has an owner), assumed (its kind gives no signal).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Signals []string `json:"signals,omitempty"`
	// BlockMove says that a provider held objects with the annotation clusterctl.cluster.x-k8s.io/block-move, and removed it.
	// +optional
	BlockMove bool `json:"blockMove,omitempty"`
	// Slowest is the longest time from the pause until one of them acknowledged, as far as it was looked at.
	// +optional
	Slowest *metav1.Duration `json:"slowest,omitempty"`
}

// PauseWaiting is an object and a reason.
type PauseWaiting struct {
	// Object as Kind.group namespace/name.
	Object string `json:"object"`
	Why    string `json:"why"`
}

// Pause pauses Cluster API clusters for as long as it exists, and says when every object below them has acknowledged that it is
// paused. Deleting it restores the pause states that were found.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=scute;cluster-api
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.counts.clusters`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.counts.objects`
// +kubebuilder:printcolumn:name="Acknowledged",type=integer,JSONPath=`.status.counts.acknowledged`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type Pause struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec PauseSpec `json:"spec"`
	// +optional
	Status PauseStatus `json:"status,omitempty"`

	// Unreadable is what could not be read of it; it is not of the resource.
	Unreadable `json:"-"`
}

// PauseList is a list of Pauses.
//
// +kubebuilder:object:root=true
type PauseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pause `json:"items"`
}
