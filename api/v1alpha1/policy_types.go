package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RepairPolicySpec opts clusters of its namespace in: without one, scute touches no machine.
type RepairPolicySpec struct {
	// Selector of Clusters by their labels. An empty one, selector: {}, selects all of the namespace; it is written as such.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="must have at most 32 labels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",fieldPath=".matchExpressions",message="must have at most 32 items"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 64)",fieldPath=".matchExpressions",message="an item must have at most 64 values"
	Selector metav1.LabelSelector `json:"selector"`

	// ControlPlanes are remediated. On by default.
	// +optional
	// +kubebuilder:default=true
	ControlPlanes *bool `json:"controlPlanes,omitempty"`

	// Workers are remediated too: machines of MachineDeployments and of MachineSets.
	// +optional
	Workers bool `json:"workers,omitempty"`

	// DryRun decides and records, and touches nothing: no mark, no health check, no replacement.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// PauseRequests, as long as there is one, keep this policy from beginning anything; each says why.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	PauseRequests []string `json:"pauseRequests,omitempty"`

	// Checks say when a machine is unhealthy.
	// +optional
	Checks RepairChecks `json:"checks,omitzero"`

	// Notices are signs that a machine is about to stop though it is healthy, such as a spot interruption or a scheduled
	// maintenance. A machine that has one is replaced as an unhealthy one is. It does not count for a mass failure, and no
	// escalation step is tried for it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Notices []RepairNotice `json:"notices,omitempty"`

	// HealthCheck makes and owns a MachineHealthCheck for each selected control plane, wired to scute, whose limit follows
	// the control plane's size: (N-1)/2. On by default. Off: bring your own, with templateRef to a SurgeRemediationTemplate.
	// +optional
	// +kubebuilder:default=true
	HealthCheck *bool `json:"healthCheck,omitempty"`

	// Methods that may be used; empty allows all. OwnerRemediation is the owner's own: it deletes first.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Methods []RepairMethod `json:"methods,omitempty"`

	// AcceptDeleteFirst lets the owner delete first where its rollout strategy has maxSurge 0 (no room for another machine), and
	// after an attempt whose replacement was not there, or not ready, in time (no capacity for another machine).
	// +optional
	AcceptDeleteFirst bool `json:"acceptDeleteFirst,omitempty"`

	// Hold keeps each machine for this long after it was found unhealthy, before anything is done about it.
	// +optional
	Hold *Duration `json:"hold,omitempty"`

	// Escalation is tried before a machine is replaced, step by step.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Escalation []EscalationStep `json:"escalation,omitempty"`

	// Limits bound how much happens at once, and during a mass failure.
	// +optional
	Limits RepairPolicyLimits `json:"limits,omitzero"`

	// Timeouts bound the waiting.
	// +optional
	Timeouts RepairTimeouts `json:"timeouts,omitzero"`

	// AllowedHooks are deletion hooks of other controllers that do not prevent a replacement: names of annotations
	// behind pre-drain.delete.hook.machine.cluster.x-k8s.io/ or pre-terminate.delete.hook.machine.cluster.x-k8s.io/. A
	// name that ends with * matches all names with that prefix.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?|([A-Za-z0-9][-A-Za-z0-9_.]*)?\*)$`
	AllowedHooks []string `json:"allowedHooks,omitempty"`

	// OutOfService has the Node of an unhealthy machine that is certainly off tainted node.kubernetes.io/out-of-service:NoExecute, so that
	// Kubernetes lets its pods and volumes go. When the Node reports again, the taint is taken off.
	// +optional
	OutOfService *RepairOutOfService `json:"outOfService,omitempty"`

	// Etcd has the members of etcd asked regularly, also while all machines are healthy.
	// +optional
	Etcd *RepairEtcd `json:"etcd,omitempty"`

	// Removal bounds what the deletion of an unhealthy machine waits for.
	// +optional
	Removal RepairRemoval `json:"removal,omitzero"`

	// MaxAttempts bounds the replacements tried for one machine, and along a chain of replacements that fail in turn.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	MaxAttempts int32 `json:"maxAttempts,omitempty"`
}

// RepairMethod is a way to replace a machine.
// +kubebuilder:validation:Enum=RolloutSurge;Surge;RelaxedSurge;OwnerRemediation
type RepairMethod string

// The methods.
const (
	// MethodRolloutSurge makes only the victim outdated: the owner's own rollout replaces it, new machine first.
	MethodRolloutSurge RepairMethod = "RolloutSurge"
	// MethodSurge raises replicas, and restores them as soon as the new machine exists.
	MethodSurge RepairMethod = "Surge"
	// MethodRelaxedSurge allows either surge with the owner's preflight relaxed: for a victim whose kubelet is dead.
	MethodRelaxedSurge RepairMethod = "RelaxedSurge"
	// MethodOwnerRemediation hands the machine to its owner, which deletes it first and then makes another.
	MethodOwnerRemediation RepairMethod = "OwnerRemediation"
)

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

// RepairPolicyLimits bound what one policy does at once. Those of all policies together are RepairLimits.
type RepairPolicyLimits struct {
	// AtOnce bounds the remediations in progress at the same time, all clusters together. One control plane never has
	// more than one.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// PerWindow bounds the remediations begun within Window.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	PerWindow int32 `json:"perWindow,omitempty"`
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Window *Duration `json:"window,omitempty"`
	// Storm is the percentage of the watched machines, and at least StormFloor machines, that must be unhealthy at once
	// to count as a mass failure. Its cause is larger than a machine, so no remediation begins.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Storm int32 `json:"storm,omitempty"`
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100000
	StormFloor int32 `json:"stormFloor,omitempty"`
	// StormCooldown is how long no remediation begins after a mass failure.
	// +optional
	// +kubebuilder:default="10m"
	StormCooldown *Duration `json:"stormCooldown,omitempty"`
	// Cooldown of an owner after a remediation, and of a machine that recovered or was tried: before it is over, none is
	// begun there.
	// +optional
	// +kubebuilder:default="5m"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// RepairTimeouts bound the waiting.
type RepairTimeouts struct {
	// ScaleUp until a replacement exists; then the request is taken back and decided again.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	ScaleUp *Duration `json:"scaleUp,omitempty"`
	// Ready until a replacement is ready; then it is removed, and decided again.
	// +optional
	// +kubebuilder:default="20m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Ready *Duration `json:"ready,omitempty"`
	// Removal until the machine is gone; then it is said so, and waited for further.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Removal *Duration `json:"removal,omitempty"`
}

// RepairOutOfService says how it is known that a machine is off. A Node that is taken for off and is not can write to a volume that
// another Node has by then.
type RepairOutOfService struct {
	// InfrastructureConditions are conditions of the infrastructure machine, each of which its provider sets only while the machine
	// is off or no longer exists, and takes back before it starts.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	InfrastructureConditions []InfrastructureCondition `json:"infrastructureConditions"`
}

// RepairEtcd says how often the members of etcd are asked while nothing needs them.
type RepairEtcd struct {
	// Interval between two surveys of the etcd of one control plane, for example 1h. Its leader, learners, alarms and the sizes of its
	// databases are recorded when they change.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	Interval Duration `json:"interval"`
}

// InfrastructureCondition is a condition of an infrastructure machine.
type InfrastructureCondition struct {
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	Type string `json:"type"`
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status string `json:"status"`
	// Reason that the condition has; any without.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$`
	Reason string `json:"reason,omitempty"`
}

// RepairRemoval bounds what the deletion of a machine that is being replaced waits for. Without it, Cluster API waits
// as long as the machine's own timeouts say, which is without limit by default.
type RepairRemoval struct {
	// DrainTimeout is how long the deletion waits until the Node is drained; then the drain is skipped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	DrainTimeout *Duration `json:"drainTimeout,omitempty"`
	// VolumeDetachTimeout is how long the deletion waits until the Node's volumes are detached; then that wait is skipped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	VolumeDetachTimeout *Duration `json:"volumeDetachTimeout,omitempty"`
}

// RepairPolicyStatus says what the policy watches and does.
type RepairPolicyStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Clusters selected.
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// Machines watched.
	// +optional
	Machines int `json:"machines,omitempty"`
	// Unhealthy of them.
	// +optional
	Unhealthy int `json:"unhealthy,omitempty"`
	// Active remediations.
	// +optional
	Active int `json:"active,omitempty"`
	// Message says in one sentence what the policy does now, or why it does nothing.
	// +optional
	Message string `json:"message,omitempty"`
	// Storm says that a mass failure is in progress, or that its cooldown is not over.
	// +optional
	Storm bool `json:"storm,omitempty"`
	// History lists the last remediations that have ended, the newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []PastRemediation `json:"history,omitempty"`
	// Etcd lists the problems of the etcd of selected control planes, alarms first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Etcd []EtcdProblem `json:"etcd,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MostEtcdProblems bounds the problems of etcd in the status of a RepairPolicy.
const MostEtcdProblems = 20

// EtcdProblemKind is a kind of problem of etcd.
type EtcdProblemKind string

// The kinds. The first two are alarms of etcd.
const (
	EtcdCorrupt    EtcdProblemKind = "Corrupt"    // the data of a member differ from those of the others
	EtcdNoSpace    EtcdProblemKind = "NoSpace"    // the database has reached its quota
	EtcdNearQuota  EtcdProblemKind = "NearQuota"  // the database is near its quota
	EtcdFragmented EtcdProblemKind = "Fragmented" // much of the database is free, and counts for its quota
)

// Alarm says that the problem is an alarm of etcd, which affects all members.
func (k EtcdProblemKind) Alarm() bool { return k == EtcdCorrupt || k == EtcdNoSpace }

// EtcdProblem is a problem of the etcd of a control plane.
type EtcdProblem struct {
	Cluster      string `json:"cluster"`
	ControlPlane string `json:"controlPlane"`
	// Problem is Corrupt or NoSpace, which are alarms of etcd, or NearQuota or Fragmented, which are about the size of its database.
	Problem EtcdProblemKind `json:"problem"`
	// Members that have it, by their nodes.
	// +optional
	// +listType=atomic
	Members []string `json:"members,omitempty"`
	// Message says in one sentence what the problem is.
	Message string `json:"message"`
	// Next is what a human can do.
	// +optional
	Next string `json:"next,omitempty"`
	// Since is when the problems of this etcd changed last.
	Since metav1.Time `json:"since"`
}

// MostPastRemediations bounds the history in the status of a RepairPolicy.
const MostPastRemediations = 10

// PastRemediation is a remediation that has ended.
type PastRemediation struct {
	// Machine that was remediated.
	Machine string `json:"machine"`
	// Cluster of the machine.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Owner that was asked for a replacement, as Kind/name.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Reason why the machine was remediated.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Method is RolloutSurge, Surge or OwnerRemediation, or Escalate when an escalation step made the machine healthy. A surge with
	// the owner's preflight checks relaxed has " (relaxed)" behind it.
	// +optional
	Method string `json:"method,omitempty"`
	// Outcome is how it ended.
	Outcome RemediationPhase `json:"outcome"`
	// Replacement is the name of the machine that has the place now, or that was created for it.
	// +optional
	Replacement string `json:"replacement,omitempty"`
	// Message says in one sentence how it ended.
	// +optional
	Message string `json:"message,omitempty"`
	// StartedAt is when it was begun.
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when it ended.
	FinishedAt metav1.Time `json:"finishedAt"`
}

// RepairPolicy opts clusters in to scute's remediation, and says how far it may go.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=scute;cluster-api,shortName=rp
// +kubebuilder:printcolumn:name="Clusters",type=integer,JSONPath=`.status.clusters`
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="Unhealthy",type=integer,JSONPath=`.status.unhealthy`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Dry-Run",type=boolean,JSONPath=`.spec.dryRun`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Last-Remediation",type=date,JSONPath=`.status.history[0].finishedAt`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type RepairPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec RepairPolicySpec `json:"spec"`
	// +optional
	Status RepairPolicyStatus `json:"status,omitempty"`

	// Unreadable is what could not be read of it; it is not of the resource.
	Unreadable `json:"-"`
}

// RepairPolicyList is a list of RepairPolicies.
//
// +kubebuilder:object:root=true
type RepairPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RepairPolicy `json:"items"`
}
