package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnhealthyAnnotation marks a Machine that scute found unhealthy, or about to become so. Its value is the JSON of an
// UnhealthyMark. scute sets and removes it; users do not need to.
const UnhealthyAnnotation = "scute.dev/unhealthy"

// UnhealthyScheduled is the state of a mark whose machine's replacement was decided.
const UnhealthyScheduled = "Scheduled"

// UnhealthyMark is the value of UnhealthyAnnotation.
type UnhealthyMark struct {
	// State is Failing (a check fails, its timeout is not reached), Unhealthy, or Scheduled (its replacement was decided).
	State string `json:"state"`
	// Since is when the check began to fail, RFC 3339 in UTC.
	Since metav1.Time `json:"since"`
	// Reason names the check.
	Reason string `json:"reason"`
	// Source is who says so: MachineHealthCheck, Operator (the annotation cluster.x-k8s.io/remediate-machine), Policy, or Notice (the
	// machine is healthy, and about to stop).
	Source string `json:"source"`
	// Remediation is the id of the remediation, as scutectl and the log know it.
	Remediation string `json:"remediation"`
}

// SurgeRemediationSpec is what an operator may say about one remediation. A MachineHealthCheck leaves it as the template
// has it.
type SurgeRemediationSpec struct {
	// Hold keeps the machine as it is, marked, before anything is done about it.
	// +optional
	Hold *RemediationHold `json:"hold,omitempty"`
	// Abort requests that a replacement in progress is cancelled, and that no other one begins for this machine.
	// +optional
	Abort bool `json:"abort,omitempty"`
}

// RemediationHold keeps an unhealthy machine for a closer look.
type RemediationHold struct {
	// Until is when the hold ends by itself; without it, the hold lasts until it is taken off. RFC 3339, such as
	// 2026-01-31T18:00:00Z.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// +kubebuilder:validation:XValidation:rule="self >= timestamp('0001-01-01T00:00:00Z')",message="must be a time"
	Until *metav1.Time `json:"until,omitempty"`
	// Reason is shown with the hold.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// RemediationPhase is the progress of the remediation of one machine.
// +kubebuilder:validation:Enum=Marked;Waiting;Held;Frozen;Escalating;Surging;Replacing;Removing;Cancelling;Succeeded;Cancelled;Failed;Recovered;Unselected
type RemediationPhase string

// The phases of a remediation.
const (
	RemediationMarked     RemediationPhase = "Marked"     // nothing was decided yet
	RemediationWaiting    RemediationPhase = "Waiting"    // something else comes first
	RemediationHeld       RemediationPhase = "Held"       // an operator, or the policy, keeps it for a look
	RemediationFrozen     RemediationPhase = "Frozen"     // acting would be dangerous
	RemediationEscalating RemediationPhase = "Escalating" // a gentler step is tried first
	RemediationSurging    RemediationPhase = "Surging"    // the owner was asked for one more machine
	RemediationReplacing  RemediationPhase = "Replacing"  // the replacement exists and is not ready
	RemediationRemoving   RemediationPhase = "Removing"   // the owner deletes the machine
	RemediationCancelling RemediationPhase = "Cancelling" // the replacement is cancelled
	RemediationSucceeded  RemediationPhase = "Succeeded"
	RemediationCancelled  RemediationPhase = "Cancelled"
	RemediationFailed     RemediationPhase = "Failed"
	RemediationRecovered  RemediationPhase = "Recovered"  // the machine is healthy again
	RemediationUnselected RemediationPhase = "Unselected" // no RepairPolicy selects the machine
)

// SurgeRemediationStatus is the log's view of the remediation of one machine.
type SurgeRemediationStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// RemediationID names the remediation in the log: the owner's aggregate, and the machine.
	// +optional
	RemediationID string `json:"remediationID,omitempty"`
	// +optional
	Phase RemediationPhase `json:"phase,omitempty"`
	// Owner is what replaces the machine, as Kind/name.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Cluster the machine belongs to.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Policy that selects it.
	// +optional
	Policy string `json:"policy,omitempty"`
	// Decision is the last one: RolloutSurge, Surge, OwnerRemediation, Wait, Freeze, Escalate or CannotRemediate. A surge
	// with the owner's preflight relaxed has " (relaxed)" behind it.
	// +optional
	Decision string `json:"decision,omitempty"`
	// Reason of the mark.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says in one sentence what happens now or how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a human can do now; empty when nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// Replacement is the name of the machine that takes the place.
	// +optional
	Replacement string `json:"replacement,omitempty"`
	// Hold is the one of the spec that the log has recorded. Other rules may come before it.
	// +optional
	Hold *RemediationHold `json:"hold,omitempty"`
	// Aborted says that the log has recorded an abort that was not taken back.
	// +optional
	Aborted bool `json:"aborted,omitempty"`
	// Attempts begun for this machine.
	// +optional
	Attempts int `json:"attempts,omitempty"`
	// Quorum is what the last look at etcd saw.
	// +optional
	Quorum *QuorumStatus `json:"quorum,omitempty"`
	// +optional
	MarkedAt *metav1.Time `json:"markedAt,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// LogID is the ID of the event log that logSequence counts in.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the log's sequence of the owner's last commit that this status reflects.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QuorumStatus is a picture of etcd's quorum.
type QuorumStatus struct {
	// Voters in the member list.
	Voters int `json:"voters"`
	// Answering of the voters, each asked itself.
	Answering int `json:"answering"`
	// Tolerates is how many more of the answering ones may fail; -1 when quorum is lost.
	Tolerates int `json:"tolerates"`
	// External etcd is not managed by the control plane; its members are not counted.
	// +optional
	External bool `json:"external,omitempty"`
	// Leader is the node whose member leads.
	// +optional
	Leader string `json:"leader,omitempty"`
	// Learners are the nodes whose members are joining, and have no vote yet.
	// +optional
	// +listType=atomic
	Learners []string `json:"learners,omitempty"`
}

// SurgeRemediation is the remediation of one Machine, by the name of the Machine. A MachineHealthCheck whose templateRef
// is a SurgeRemediationTemplate creates it (Cluster API's contract for external remediation), or scute itself.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=scute;cluster-api,shortName=srem
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Owner",type=string,JSONPath=`.status.owner`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.status.decision`
// +kubebuilder:printcolumn:name="Replacement",type=string,JSONPath=`.status.replacement`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type SurgeRemediation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec may be left out: Cluster API makes requests of templates that have none. Then nothing is held or aborted.
	// +optional
	// +kubebuilder:default={}
	Spec SurgeRemediationSpec `json:"spec,omitempty"`
	// +optional
	Status SurgeRemediationStatus `json:"status,omitempty"`

	// Unreadable is what could not be read of it; it is not of the resource.
	Unreadable `json:"-"`
}

// SurgeRemediationList is a list of SurgeRemediations.
//
// +kubebuilder:object:root=true
type SurgeRemediationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SurgeRemediation `json:"items"`
}

// SurgeRemediationTemplateSpec holds what a MachineHealthCheck makes requests from.
type SurgeRemediationTemplateSpec struct {
	// +optional
	Template SurgeRemediationTemplateResource `json:"template,omitzero"`
}

// SurgeRemediationTemplateResource is the request to be made.
type SurgeRemediationTemplateResource struct {
	// +optional
	Spec SurgeRemediationSpec `json:"spec,omitzero"`
}

// SurgeRemediationTemplate is what a MachineHealthCheck refers to so that scute remediates its machines.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=scute;cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
type SurgeRemediationTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SurgeRemediationTemplateSpec `json:"spec"`

	// Unreadable is what could not be read of it; it is not of the resource.
	Unreadable `json:"-"`
}

// SurgeRemediationTemplateList is a list of SurgeRemediationTemplates.
//
// +kubebuilder:object:root=true
type SurgeRemediationTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SurgeRemediationTemplate `json:"items"`
}
