package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnhealthyAnnotation on a Machine means that the Machine is unhealthy or will be soon. Its value
// is an UnhealthyMark as JSON. scute sets and deletes it.
const UnhealthyAnnotation = "scute.dev/unhealthy"

// UnhealthyScheduled is the State of a machine whose replacement was decided.
const UnhealthyScheduled = "Scheduled"

// UnhealthyMark is the value of UnhealthyAnnotation.
type UnhealthyMark struct {
	// State is Failing (a check fails, and its timeout has not ended), Unhealthy, or Scheduled (its
	// replacement was decided).
	State string `json:"state"`
	// Since is when the check began to fail, in RFC 3339 and UTC.
	Since metav1.Time `json:"since"`
	// Reason is the name of the check.
	Reason string `json:"reason"`
	// Source is what reported the machine: MachineHealthCheck, Operator (with the annotation
	// cluster.x-k8s.io/remediate-machine), Policy, or Notice (the machine is healthy and will stop soon).
	Source string `json:"source"`
	// Remediation is the ID of the remediation in scutectl and in the event log.
	Remediation string `json:"remediation"`
}

// SurgeRemediationSpec contains an operator's settings for one remediation. A MachineHealthCheck
// copies them from the template.
type SurgeRemediationSpec struct {
	// Hold prevents every change of the machine, except of its annotation.
	// +optional
	Hold *RemediationHold `json:"hold,omitempty"`
	// Abort cancels a replacement in progress, and prevents another one for this machine.
	// +optional
	Abort bool `json:"abort,omitempty"`
}

// RemediationHold keeps an unhealthy machine for inspection.
type RemediationHold struct {
	// Until is when the hold ends, in RFC 3339, such as 2026-01-31T18:00:00Z. Without it, the hold
	// lasts until it is removed.
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
	RemediationMarked     RemediationPhase = "Marked"     // no decision was made yet
	RemediationWaiting    RemediationPhase = "Waiting"    // another operation must end first
	RemediationHeld       RemediationPhase = "Held"       // an operator or the policy holds the machine
	RemediationFrozen     RemediationPhase = "Frozen"     // acting would be dangerous
	RemediationEscalating RemediationPhase = "Escalating" // an escalation step is tried first
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

// SurgeRemediationStatus is the state of a machine's remediation in the event log.
type SurgeRemediationStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// RemediationID is the ID of the remediation in the event log: the owner's ID, and the machine.
	// +optional
	RemediationID string `json:"remediationID,omitempty"`
	// +optional
	Phase RemediationPhase `json:"phase,omitempty"`
	// Owner is the object that replaces the machine, as Kind/name.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Cluster is the name of the machine's cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Policy is the name of the RepairPolicy that selects the machine.
	// +optional
	Policy string `json:"policy,omitempty"`
	// Decision is the last decision: RolloutSurge, Surge, OwnerRemediation, Wait, Freeze, Escalate or
	// CannotRemediate. It ends with " (relaxed)" for a surge with relaxed preflight checks of the owner.
	// +optional
	Decision string `json:"decision,omitempty"`
	// Reason is why the machine is unhealthy or will be soon.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message describes the current state or the result in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// Next is what a user can do now; empty if nothing is needed.
	// +optional
	Next string `json:"next,omitempty"`
	// Replacement is the name of the machine that replaces it.
	// +optional
	Replacement string `json:"replacement,omitempty"`
	// Hold is the hold of the spec as recorded in the event log. Other rules may have precedence.
	// +optional
	Hold *RemediationHold `json:"hold,omitempty"`
	// Aborted means that the event log has recorded an abort that was not withdrawn.
	// +optional
	Aborted bool `json:"aborted,omitempty"`
	// Attempts is the number of attempts for this machine.
	// +optional
	Attempts int `json:"attempts,omitempty"`
	// Quorum is the result of the last check of etcd.
	// +optional
	Quorum *QuorumStatus `json:"quorum,omitempty"`
	// +optional
	MarkedAt *metav1.Time `json:"markedAt,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// LogID is the ID of the event log to which logSequence refers.
	// +optional
	LogID string `json:"logID,omitempty"`
	// LogSequence is the sequence of the owner's last commit that this status includes.
	// +optional
	LogSequence int64 `json:"logSequence,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QuorumStatus is the state of etcd's quorum.
type QuorumStatus struct {
	// Voters is the number of voters in the member list.
	Voters int `json:"voters"`
	// Responding is the number of voters that responded to a direct request.
	Responding int `json:"responding"`
	// Tolerates is how many of the responding voters may still fail; -1 if quorum is lost.
	Tolerates int `json:"tolerates"`
	// External means that the control plane does not manage etcd; its members are not counted.
	// +optional
	External bool `json:"external,omitempty"`
	// Leader is the node of the leader.
	// +optional
	Leader string `json:"leader,omitempty"`
	// Learners are the nodes of the members that are joining and cannot vote yet.
	// +optional
	// +listType=atomic
	Learners []string `json:"learners,omitempty"`
}

// SurgeRemediation is the remediation of the Machine with the same name. It is created by scute, or
// by a MachineHealthCheck whose templateRef is a SurgeRemediationTemplate (Cluster API's contract
// for external remediation).
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

	// Spec is optional, because Cluster API creates a request without a spec from a template
	// without one. An empty spec means no hold and no abort.
	// +optional
	// +kubebuilder:default={}
	Spec SurgeRemediationSpec `json:"spec,omitempty"`
	// +optional
	Status SurgeRemediationStatus `json:"status,omitempty"`

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
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

// SurgeRemediationTemplateSpec contains the template from which a MachineHealthCheck creates requests.
type SurgeRemediationTemplateSpec struct {
	// +optional
	Template SurgeRemediationTemplateResource `json:"template,omitzero"`
}

// SurgeRemediationTemplateResource is the template of a SurgeRemediation.
type SurgeRemediationTemplateResource struct {
	// +optional
	Spec SurgeRemediationSpec `json:"spec,omitzero"`
}

// SurgeRemediationTemplate makes scute remediate the machines of each MachineHealthCheck whose
// templateRef refers to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=scute;cluster-api
// +kubebuilder:metadata:labels={"cluster.x-k8s.io/v1beta1=v1alpha1","cluster.x-k8s.io/v1beta2=v1alpha1"}
type SurgeRemediationTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SurgeRemediationTemplateSpec `json:"spec"`

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
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
