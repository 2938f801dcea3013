package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RepairPolicySpec enables remediation for clusters of its namespace. Without a RepairPolicy scute changes no machine.
type RepairPolicySpec struct {
	// Selector selects Clusters by their labels. An empty selector, written as selector: {},
	// selects all Clusters of the namespace.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchLabels) || size(self.matchLabels) <= 32",fieldPath=".matchLabels",message="must have at most 32 labels"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || size(self.matchExpressions) <= 32",fieldPath=".matchExpressions",message="must have at most 32 items"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, !has(e.values) || size(e.values) <= 64)",fieldPath=".matchExpressions",message="an item must have at most 64 values"
	Selector metav1.LabelSelector `json:"selector"`

	// ControlPlanes enables the remediation of control plane machines. Default: true.
	// +optional
	// +kubebuilder:default=true
	ControlPlanes *bool `json:"controlPlanes,omitempty"`

	// Workers enables the remediation of worker machines, which belong to MachineDeployments and MachineSets.
	// +optional
	Workers bool `json:"workers,omitempty"`

	// DryRun makes and records decisions, but changes nothing: no annotation, no
	// MachineHealthCheck, no replacement.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// PauseRequests are reasons to pause: while there is at least one, this policy begins no remediation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	PauseRequests []string `json:"pauseRequests,omitempty"`

	// Checks define when a machine is unhealthy.
	// +optional
	Checks RepairChecks `json:"checks,omitzero"`

	// Notices are signs that a healthy machine will stop soon, such as a spot interruption or a
	// scheduled maintenance. A machine with a notice is replaced like an unhealthy machine, but
	// without escalation steps. It is not counted for a mass failure.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Notices []RepairNotice `json:"notices,omitempty"`

	// HealthCheck creates and owns a MachineHealthCheck for each selected control plane. It uses
	// scute for remediation, unless more than (N-1)/2 of N machines are unhealthy. Default: true.
	// If false, create a MachineHealthCheck with a templateRef to a SurgeRemediationTemplate.
	// +optional
	// +kubebuilder:default=true
	HealthCheck *bool `json:"healthCheck,omitempty"`

	// Methods are the allowed methods; empty allows all. OwnerRemediation is the remediation by the
	// owner, which deletes the machine first.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Methods []RepairMethod `json:"methods,omitempty"`

	// AcceptDeleteFirst allows the owner to delete the machine before its replacement exists, if
	// the rollout strategy has maxSurge 0, or if an earlier replacement was not created or not
	// ready in time (no capacity for another machine).
	// +optional
	AcceptDeleteFirst bool `json:"acceptDeleteFirst,omitempty"`

	// GuardDeletions makes the API server refuse a user's deletion of a control plane machine while etcd needs
	// the machine: because too few members would respond without it, because another machine is being deleted,
	// or because it is the only machine. The annotation scute.dev/needed on the machine contains the reason.
	// The annotation scute.dev/delete-anyway allows the deletion.
	// +optional
	GuardDeletions bool `json:"guardDeletions,omitempty"`

	// Hold is how long each machine is kept unchanged after it was found unhealthy.
	// +optional
	Hold *Duration `json:"hold,omitempty"`

	// Escalation are steps to try, one after the other, before a machine is replaced.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Escalation []EscalationStep `json:"escalation,omitempty"`

	// Limits are the limits of concurrent remediations, and of remediations during a mass failure.
	// +optional
	Limits RepairPolicyLimits `json:"limits,omitzero"`

	// Timeouts are the timeouts of a remediation.
	// +optional
	Timeouts RepairTimeouts `json:"timeouts,omitzero"`

	// AllowedHooks are deletion hooks of other controllers that do not prevent a replacement. Each
	// is the name of an annotation after the prefix pre-drain.delete.hook.machine.cluster.x-k8s.io/
	// or pre-terminate.delete.hook.machine.cluster.x-k8s.io/. A name that ends with * matches all
	// names with this prefix.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?|([A-Za-z0-9][-A-Za-z0-9_.]*)?\*)$`
	AllowedHooks []string `json:"allowedHooks,omitempty"`

	// Etcd enables regular checks of the etcd members, even while all machines are healthy.
	// +optional
	Etcd *RepairEtcd `json:"etcd,omitempty"`

	// Removal sets the timeouts of the deletion of an unhealthy machine.
	// +optional
	Removal RepairRemoval `json:"removal,omitzero"`

	// MaxAttempts is the maximum number of replacements for one machine. If a replacement fails and
	// is replaced itself, the whole chain of replacements counts.
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
	// MethodRolloutSurge makes only the unhealthy machine outdated. The rollout of the owner then
	// creates a new machine before it deletes this one.
	MethodRolloutSurge RepairMethod = "RolloutSurge"
	// MethodSurge increases the replicas of the owner, and restores them as soon as the new machine exists.
	MethodSurge RepairMethod = "Surge"
	// MethodRelaxedSurge allows both surges with relaxed preflight checks of the owner, for a
	// machine whose kubelet is dead.
	MethodRelaxedSurge RepairMethod = "RelaxedSurge"
	// MethodOwnerRemediation requests remediation by the owner, which deletes the machine before it
	// creates another one.
	MethodOwnerRemediation RepairMethod = "OwnerRemediation"
)

// RepairPolicyLimits are the limits of one policy. RepairLimits has the limits of all policies together.
type RepairPolicyLimits struct {
	// AtOnce is the maximum number of concurrent remediations in all clusters. A control plane never has more than one.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// WorkersAtOnce is the maximum number of concurrent remediations of the machines of one
	// MachineDeployment, or of one MachineSet without a MachineDeployment. Each surge adds one
	// machine to it. These remediations also count for atOnce.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	WorkersAtOnce int32 `json:"workersAtOnce,omitempty"`
	// PerWindow is the maximum number of remediations that begin within window.
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
	// MassFailure defines how many machines of the policy must be unhealthy at once for a mass
	// failure. During it, no remediation begins.
	// +optional
	MassFailure PolicyMassFailure `json:"massFailure,omitzero"`
	// Cooldown is the time without another remediation for an owner after a remediation, and for a
	// machine after it recovered or an attempt ended.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// PolicyMassFailure defines a mass failure of the machines of a policy.
type PolicyMassFailure struct {
	// Percent is the percentage of the watched machines that must be unhealthy at once. At least
	// floor machines must also be unhealthy.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100000
	Floor int32 `json:"floor,omitempty"`
	// Cooldown is how long no remediation begins after a mass failure.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// RepairTimeouts are the timeouts of a remediation.
type RepairTimeouts struct {
	// ScaleUp limits the wait until a replacement exists. After it the request is cancelled, and a
	// new decision is made.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	ScaleUp *Duration `json:"scaleUp,omitempty"`
	// Ready limits the wait until a replacement is ready. After it the replacement is deleted, and
	// a new decision is made.
	// +optional
	// +kubebuilder:default="20m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Ready *Duration `json:"ready,omitempty"`
	// Removal limits the wait until the machine is deleted. After it the delay is reported, and the
	// wait continues.
	// +optional
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	Removal *Duration `json:"removal,omitempty"`
}

// RepairEtcd configures regular checks of etcd, and the defragmentation of its databases.
type RepairEtcd struct {
	// Interval is the time between two checks of a control plane's etcd, for example 1h. Changes of
	// its leader, learners, alarms and database sizes are recorded.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	Interval Duration `json:"interval"`
	// Defragmentation defragments databases with much free space. Without it, they are only reported.
	// +optional
	Defragmentation *RepairDefragmentation `json:"defragmentation,omitempty"`
}

// RepairDefragmentation configures the defragmentation of etcd members. A member does not respond
// during its defragmentation. One member is defragmented at a time, the leader last, and none while
// a machine of the control plane is being replaced or is unhealthy.
type RepairDefragmentation struct {
	// FreePercent is the percentage of a database that must be free.
	// +optional
	// +kubebuilder:default=45
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=95
	FreePercent int32 `json:"freePercent,omitempty"`
	// MinSizeMiB is the minimum size of a database on disk, in MiB.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	MinSizeMiB int32 `json:"minSizeMiB,omitempty"`
	// Pause is the time between the defragmentations of two members of one control plane.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	Pause *Duration `json:"pause,omitempty"`
	// Deadline limits the wait until a member is defragmented and responds again. Meanwhile no
	// remediation of its control plane begins.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('5m')",message="must be between 10s and 5m"
	Deadline *Duration `json:"deadline,omitempty"`
	// DisarmNoSpace disarms the alarm NOSPACE when defragmentation has reduced every database to
	// less than 75 % of its quota. Otherwise a user must disarm it. It never disarms the alarm of
	// members before etcd 3.6, because they do not report their quota.
	// +optional
	DisarmNoSpace bool `json:"disarmNoSpace,omitempty"`
}

// RepairRemoval sets the timeouts of the deletion of a machine that is being replaced. Without it,
// the timeouts of the machine apply, which are unlimited by default.
type RepairRemoval struct {
	// DrainTimeout is the timeout for draining the Node. After it the drain is skipped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	DrainTimeout *Duration `json:"drainTimeout,omitempty"`
	// VolumeDetachTimeout is the timeout for detaching the Node's volumes. After it this wait is skipped.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	VolumeDetachTimeout *Duration `json:"volumeDetachTimeout,omitempty"`
}

// RepairPolicy enables scute's remediation for clusters, and limits it.
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

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
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
