package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PauseSpec requests that Cluster API clusters of the Pause's namespace are paused as long as the
// Pause exists. It cannot be changed.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec cannot be changed: create another Pause, which may overlap with this one, and then delete this one"
// +kubebuilder:validation:XValidation:rule="(has(self.clusters) && size(self.clusters) > 0) || has(self.selector)",message="set clusters (a list of Cluster names), selector (a label selector), or both"
type PauseSpec struct {
	// Clusters are names of Clusters in the Pause's namespace. A Cluster that does not exist yet is
	// paused when it is created.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Clusters []string `json:"clusters,omitempty"`
	// Selector selects Clusters of the namespace by their labels, in addition to clusters; an empty
	// selector selects all. A Cluster that gets the labels later is paused then. A Cluster that
	// loses the labels stays paused until the Pause is deleted.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="must have at most 32 labels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",fieldPath=".matchExpressions",message="must have at most 32 items"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 64)",fieldPath=".matchExpressions",message="an item must have at most 64 values"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Reason is why the clusters are paused. It is recorded in the event log.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`
	// Timeouts are the timeouts of the pause; each has a default.
	// +optional
	Timeouts PauseTimeouts `json:"timeouts,omitzero"`
}

// PauseTimeouts are the timeouts after which a Pause reports the objects that have not
// acknowledged. A timeout changes nothing else: the Pause continues to check the objects, less
// often.
type PauseTimeouts struct {
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
	// Resume limits the wait until all objects have resumed after the Pause was deleted and the
	// clusters were restored. After it the Pause is removed, and an event lists the objects that
	// have not resumed.
	// +optional
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Resume *Duration `json:"resume,omitempty"`
}

// PausePhase is the progress of a Pause.
// +kubebuilder:validation:Enum=Pending;Pausing;Acknowledging;TimedOut;Acknowledged;Restoring;Resuming;Released
type PausePhase string

// The phases of a Pause.
const (
	// PausePending means that no daemon has begun the pause.
	PausePending PausePhase = "Pending"
	// PausePausing means that some Clusters are not set to paused yet.
	PausePausing PausePhase = "Pausing"
	// PauseAcknowledging means that all Clusters are set to paused, and some objects have not acknowledged it.
	PauseAcknowledging PausePhase = "Acknowledging"
	// PauseTimedOut means that an object did not acknowledge in time. The Pause continues to check it.
	PauseTimedOut PausePhase = "TimedOut"
	// PauseAcknowledged means that every object is paused.
	PauseAcknowledged PausePhase = "Acknowledged"
	// PauseRestoring means that the Pause was deleted, and the previous pause states are being restored.
	PauseRestoring PausePhase = "Restoring"
	// PauseResuming means that the clusters are restored, and some objects have not resumed.
	PauseResuming PausePhase = "Resuming"
	// PauseReleased means that the pause has ended.
	PauseReleased PausePhase = "Released"
)

// PauseStatus is the state of the pause in the event log.
type PauseStatus struct {
	// ObservedGeneration is the generation of the spec that the event log has recorded.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// PauseID is the ID of the pause in the event log.
	// +optional
	PauseID string `json:"pauseID,omitempty"`
	// +optional
	Phase PausePhase `json:"phase,omitempty"`
	// Message describes the current state in one sentence.
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
	// FinishedAt is when all objects had resumed, or when the wait for them timed out.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// +optional
	Counts PauseCounts `json:"counts,omitzero"`
	// Clusters are the first hundred Clusters that the Pause has paused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	Clusters []PauseCluster `json:"clusters,omitempty"`
	// Kinds show how the objects of each kind acknowledged, for the first hundred kinds.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=100
	Kinds []PauseKind `json:"kinds,omitempty"`
	// WaitingFor lists the first twenty objects that the Pause waits for.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	WaitingFor []PauseWaiting `json:"waitingFor,omitempty"`
	// Unacknowledged lists the first twenty objects that had not acknowledged the pause when it ended.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Unacknowledged []PauseWaiting `json:"unacknowledged,omitempty"`
	// LogID is the ID of the event log to which logSequence refers.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the sequence of the Pause's last commit that this status includes.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PauseCounts are numbers of clusters and objects.
type PauseCounts struct {
	// Clusters is the number of selected Clusters.
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// Objects is the number of objects that must acknowledge the pause.
	// +optional
	Objects int `json:"objects,omitempty"`
	// Acknowledged is the number of objects that have acknowledged the pause.
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// Pending is the number of objects that have not acknowledged the pause, or had not when it ended.
	// +optional
	Pending int `json:"pending,omitempty"`
	// StillPaused is the number of objects that still report that they are paused, although the
	// clusters were restored.
	// +optional
	StillPaused int `json:"stillPaused,omitempty"`
}

// PauseCluster is a Cluster of a Pause.
type PauseCluster struct {
	Name string `json:"name"`
	// FoundPaused means that the Cluster was paused before. It stays paused when the Pause is deleted.
	// +optional
	FoundPaused bool `json:"foundPaused,omitempty"`
	// Paused means that the Cluster is set to paused.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// Objects is the number of objects of the Cluster that must acknowledge the pause, including the Cluster.
	// +optional
	Objects int `json:"objects,omitempty"`
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// Pending is the number of objects that have not acknowledged the pause. status.waitingFor
	// lists some of them, for all clusters together.
	// +optional
	Pending int `json:"pending,omitempty"`
}

// PauseKind shows how the objects of a kind acknowledged the pause.
type PauseKind struct {
	// Kind as Kind.group.
	Kind string `json:"kind"`
	// +optional
	Acknowledged int `json:"acknowledged,omitempty"`
	// +optional
	Pending int `json:"pending,omitempty"`
	// Signals show how these objects acknowledged the pause: condition (the condition Paused became
	// True), already-held (it was True because of an earlier pause), settled (it was True for an
	// unknown reason, and stayed True), through-owner (no controller acts on the object before it
	// has an owner), assumed (the kind has no signal).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	Signals []string `json:"signals,omitempty"`
	// BlockMove means that a provider had set the annotation clusterctl.cluster.x-k8s.io/block-move
	// on objects, and removed it.
	// +optional
	BlockMove bool `json:"blockMove,omitempty"`
	// Slowest is the longest observed time from the pause to the acknowledgement of an object.
	// +optional
	Slowest *metav1.Duration `json:"slowest,omitempty"`
}

// PauseWaiting is an object and a reason.
type PauseWaiting struct {
	// Object as Kind.group namespace/name.
	Object  string `json:"object"`
	Message string `json:"message"`
}

// Pause pauses Cluster API clusters as long as it exists, and reports when every object of these
// clusters has acknowledged that it is paused. When it is deleted, the previous pause states are
// restored.
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

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
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
