package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

	// GuardDeletions has the API server refuse that people delete a machine of a control plane while etcd needs it: without the machine
	// too few members would answer, or another one is being deleted, or it is the only one. The machine then has the annotation
	// scute.dev/needed, which says why. The annotation scute.dev/delete-anyway lets it be deleted all the same.
	// +optional
	GuardDeletions bool `json:"guardDeletions,omitempty"`

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

// RepairPolicyLimits bound what one policy does at once. Those of all policies together are RepairLimits.
type RepairPolicyLimits struct {
	// AtOnce bounds the remediations in progress at the same time, all clusters together. One control plane never has
	// more than one.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// WorkersAtOnce bounds the remediations in progress of the machines of one MachineDeployment, or of one MachineSet without one. Each
	// surge has it make one machine more. They count for AtOnce.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	WorkersAtOnce int32 `json:"workersAtOnce,omitempty"`
	// PerWindow bounds the remediations begun within Window.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	PerWindow int32 `json:"perWindow,omitempty"`
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
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
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	StormCooldown *Duration `json:"stormCooldown,omitempty"`
	// Cooldown of an owner after a remediation, and of a machine that recovered or was tried: before it is over, none is
	// begun there.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
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

// RepairEtcd says how often the members of etcd are asked while nothing needs them, and what is done about their databases.
type RepairEtcd struct {
	// Interval between two surveys of the etcd of one control plane, for example 1h. Its leader, learners, alarms and the sizes of its
	// databases are recorded when they change.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	Interval Duration `json:"interval"`
	// Defragmentation of databases that have much free space. Without it, they are only reported.
	// +optional
	Defragmentation *RepairDefragmentation `json:"defragmentation,omitempty"`
}

// RepairDefragmentation says when a member of etcd is defragmented. It answers no requests meanwhile. One member is defragmented at a
// time, the leader last, and none while a machine of its control plane is replaced or unhealthy.
type RepairDefragmentation struct {
	// FreePercent is how much of a database must be free.
	// +optional
	// +kubebuilder:default=45
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=95
	FreePercent int32 `json:"freePercent,omitempty"`
	// MinSizeMiB is how large a database must be on disk, in MiB.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	MinSizeMiB int32 `json:"minSizeMiB,omitempty"`
	// Pause between two members of one control plane.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	Pause *Duration `json:"pause,omitempty"`
	// Deadline until which a member must be defragmented and answer again. Nothing is begun for its control plane before.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('5m')",message="must be between 10s and 5m"
	Deadline *Duration `json:"deadline,omitempty"`
	// DisarmNoSpace has the alarm NOSPACE disarmed when defragmentations have brought every database below 75 % of its quota.
	// Otherwise the alarm is left to people. Members before etcd 3.6 do not say their quota, so theirs is never disarmed.
	// +optional
	DisarmNoSpace bool `json:"disarmNoSpace,omitempty"`
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
