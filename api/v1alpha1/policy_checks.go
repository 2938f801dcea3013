package v1alpha1

import "k8s.io/apimachinery/pkg/runtime"

// RepairChecks say when a machine is unhealthy. They are those of a MachineHealthCheck.
type RepairChecks struct {
	// NodeStartup is how long a machine may take until it has a Node.
	// +optional
	// +kubebuilder:default="10m"
	NodeStartup *Duration `json:"nodeStartup,omitempty"`
	// UnhealthyNodeConditions of the Node; by default Ready False or Unknown for 5 minutes. Of others than Ready, the time counts
	// from when scute saw them, for which it reads the Nodes in their cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	UnhealthyNodeConditions []UnhealthyCondition `json:"unhealthyNodeConditions,omitempty"`
	// UnhealthyMachineConditions of the Machine.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	UnhealthyMachineConditions []UnhealthyCondition `json:"unhealthyMachineConditions,omitempty"`
}

// UnhealthyCondition is a condition that makes a machine unhealthy when it has lasted for the timeout.
type UnhealthyCondition struct {
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	Type string `json:"type"`
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status string `json:"status"`
	// Timeout is how long the condition must have lasted.
	Timeout Duration `json:"timeout"`
}

// NoticeType is where a notice is found. Nodes are read in their cluster, every 30 seconds.
// +kubebuilder:validation:Enum=MachineAnnotation;NodeAnnotation;NodeCondition;NodeTaint
type NoticeType string

// The types of notices.
const (
	NoticeNodeCondition     NoticeType = "NodeCondition"
	NoticeNodeTaint         NoticeType = "NodeTaint"
	NoticeNodeAnnotation    NoticeType = "NodeAnnotation"
	NoticeMachineAnnotation NoticeType = "MachineAnnotation"
)

// RepairNotice is a sign that a machine is about to stop. It counts as long as it is there.
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || self.type in ['NodeAnnotation', 'MachineAnnotation']",fieldPath=".leadTime",message="only the value of an annotation is a time"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || !has(self.value)",fieldPath=".value",message="must not be set with leadTime"
// +kubebuilder:validation:XValidation:rule="self.type != 'NodeCondition' || !has(self.value) || self.value in ['True', 'False', 'Unknown']",fieldPath=".value",message="the status of a condition is True, False or Unknown"
type RepairNotice struct {
	// Type says where the notice is found.
	Type NoticeType `json:"type"`
	// Key of the annotation or the taint, or type of the condition.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	Key string `json:"key"`
	// Value that it has; by default any, and of a condition the status True.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value,omitempty"`
	// LeadTime says that the value of the annotation is the time at which the machine stops, such as 2026-01-31T18:00:00Z. The
	// machine is replaced from this long before that time on. Without it, the notice counts at once.
	// +optional
	LeadTime *Duration `json:"leadTime,omitempty"`
}

// EscalationStep asks somebody else for a gentler cure, a reboot for example, by an object made from a template. When the
// machine is healthy within the timeout, nothing more is done.
type EscalationStep struct {
	// Name of the step.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Template of the object; ${machine}, ${node}, ${cluster} and ${namespace} are replaced by the names that belong to
	// the machine, and ${infrastructure.PATH} by the field of its infrastructure machine at that JSONPath:
	// ${infrastructure.spec.hardwareName}. It is created in the policy's namespace and deleted when the step is over.
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`
	// Timeout until the next step, or the replacement, follows.
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Timeout Duration `json:"timeout"`
	// FailedWhen says by which fields the object's controller tells that it has failed; one of them is enough. Then the next
	// step, or the replacement, follows at once.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	FailedWhen []FieldValue `json:"failedWhen,omitempty"`
}

// FieldValue is a field of an object that has a value.
type FieldValue struct {
	// JSONPath of the field, as kubectl has it: .status.phase, or .status.conditions[?(@.type=="Failed")].status. It has fields,
	// indexes and filters only.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^\.`
	JSONPath string `json:"jsonPath"`
	// Value that it has then.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Value string `json:"value"`
}
