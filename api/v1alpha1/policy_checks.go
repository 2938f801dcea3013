package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// RepairChecks define when a machine is unhealthy, like the checks of a MachineHealthCheck.
type RepairChecks struct {
	// NodeStartup is the time within which a machine must get a Node.
	// +optional
	// +kubebuilder:default="10m"
	NodeStartup *Duration `json:"nodeStartup,omitempty"`
	// UnhealthyNodeConditions are conditions of the Node; by default Ready False or Unknown for 5
	// minutes. For conditions other than Ready, scute reads the Nodes in their cluster, and the
	// timeout begins when it first sees the condition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	UnhealthyNodeConditions []UnhealthyCondition `json:"unhealthyNodeConditions,omitempty"`
	// UnhealthyMachineConditions are conditions of the Machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	UnhealthyMachineConditions []UnhealthyCondition `json:"unhealthyMachineConditions,omitempty"`
}

// UnhealthyCondition is a condition that makes a machine unhealthy after a timeout.
type UnhealthyCondition struct {
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	Type string `json:"type"`
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status string `json:"status"`
	// Timeout is how long the condition must last.
	Timeout Duration `json:"timeout"`
}

// NoticeType is where a notice appears. Nodes are read in their cluster every 30 seconds.
// +kubebuilder:validation:Enum=MachineAnnotation;NodeAnnotation;NodeCondition;NodeTaint
type NoticeType string

// The types of notices.
const (
	NoticeNodeCondition     NoticeType = "NodeCondition"
	NoticeNodeTaint         NoticeType = "NodeTaint"
	NoticeNodeAnnotation    NoticeType = "NodeAnnotation"
	NoticeMachineAnnotation NoticeType = "MachineAnnotation"
)

// RepairNotice is a sign that a machine will stop soon. It has an effect as long as it exists.
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || self.type in ['NodeAnnotation', 'MachineAnnotation']",fieldPath=".leadTime",message="can only be set for an annotation, whose value is a time"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || !has(self.value)",fieldPath=".value",message="must not be set with leadTime"
// +kubebuilder:validation:XValidation:rule="self.type != 'NodeCondition' || !has(self.value) || self.value in ['True', 'False', 'Unknown']",fieldPath=".value",message="the status of a condition must be True, False or Unknown"
type RepairNotice struct {
	// Type is where the notice appears.
	Type NoticeType `json:"type"`
	// Key is the key of the annotation or taint, or the type of the condition.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	Key string `json:"key"`
	// Value is the required value. By default any value counts, or for a condition the status True.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value,omitempty"`
	// LeadTime is how long before its stop a machine is replaced. The value of the annotation must be the time
	// of the stop, such as 2026-01-31T18:00:00Z. Without leadTime the notice takes effect at once.
	// +optional
	LeadTime *Duration `json:"leadTime,omitempty"`
}

// EscalationStep requests a less disruptive repair from another controller, for example a reboot, by creating
// an object from a template. If the machine becomes healthy within the timeout, it is not replaced.
type EscalationStep struct {
	// Name is the name of the step.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Template is the object to create. ${machine}, ${node}, ${cluster} and ${namespace} are
	// replaced by the names for the machine. ${infrastructure.PATH} is replaced by the field of its
	// infrastructure machine at this JSONPath, such as ${infrastructure.spec.hardwareName}. The
	// object is created in the namespace of the policy, and deleted when the step has ended.
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
	// Timeout is how long the step may take before the next step or the replacement begins.
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Timeout Duration `json:"timeout"`
	// FailedWhen lists fields with which the controller of the object reports a failure. If one of
	// them has its value, the next step or the replacement begins at once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	FailedWhen []FieldValue `json:"failedWhen,omitempty"`
}

// FieldValue is a field of an object and its value.
type FieldValue struct {
	// JSONPath is the path of the field in the syntax of kubectl: .status.phase, or
	// .status.conditions[?(@.type=="Failed")].status. Only fields, indexes and filters are
	// supported.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\.`
	JSONPath string `json:"jsonPath"`
	// Value is the value of the field.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}
