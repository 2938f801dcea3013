package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RepairLimitsName is the name of the only RepairLimits.
const RepairLimitsName = "default"

// DefaultRegionLabel is the default of failureDomains.regionLabel.
const DefaultRegionLabel = "topology.kubernetes.io/region"

// RepairLimitsSpec limits the remediations of all RepairPolicies together. The defaults of its
// fields also apply if there is no RepairLimits.
type RepairLimitsSpec struct {
	// PauseRequests are reasons to pause: while there is at least one, no policy begins a remediation.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	PauseRequests []string `json:"pauseRequests,omitempty"`
	// AtOnce is the maximum number of concurrent remediations of all policies.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// PerWindow is the maximum number of remediations that begin within window.
	// +optional
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	PerWindow int32 `json:"perWindow,omitempty"`
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('[1-9]')",message="must be more than 0"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Window *Duration `json:"window,omitempty"`
	// MassFailure defines how many machines must be unhealthy at once for a mass failure of the
	// fleet. During it, no remediation begins. Machines in a failure domain with its own mass
	// failure are not counted.
	// +optional
	MassFailure FleetMassFailure `json:"massFailure,omitzero"`
	// FailureDomains are the limits of each failure domain.
	// +optional
	FailureDomains FailureDomainLimits `json:"failureDomains,omitzero"`
}

// FleetMassFailure defines a mass failure of the fleet.
type FleetMassFailure struct {
	// Percent is the percentage of the machines selected by RepairPolicies that must be unhealthy
	// at once. At least floor machines must also be unhealthy.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100000
	Floor int32 `json:"floor,omitempty"`
	// Cooldown is how long no remediation begins after a mass failure.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// FailureDomainLimits are the limits of each failure domain of Cluster API. Machines of different
// clusters in the same failure domain are counted together.
type FailureDomainLimits struct {
	// AtOnce is the maximum number of concurrent remediations of machines in one failure domain.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// MassFailure defines a mass failure of a failure domain. During it, no remediation begins
	// whose replacement would be created in the failure domain.
	// +optional
	MassFailure FailureDomainMassFailure `json:"massFailure,omitzero"`
	// RegionLabel is a label of Clusters. Failure domains with the same name count as different if
	// this label of their Clusters differs, because some infrastructure providers number the
	// failure domains of each region separately.
	// +optional
	// +kubebuilder:default="topology.kubernetes.io/region"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	RegionLabel string `json:"regionLabel,omitempty"`
}

// FailureDomainMassFailure defines a mass failure of a failure domain.
type FailureDomainMassFailure struct {
	// Percent is the percentage of the failure domain's machines selected by RepairPolicies that
	// must be unhealthy at once. At least floor machines must also be unhealthy.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent,omitempty"`
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100000
	Floor int32 `json:"floor,omitempty"`
	// Cooldown is how long no replacement is created in a failure domain after its mass failure.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// RepairLimitsStatus shows the use of the limits.
type RepairLimitsStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Machines is the number of machines that RepairPolicies select.
	// +optional
	Machines int `json:"machines,omitempty"`
	// Unhealthy is the number of these machines that are unhealthy.
	// +optional
	Unhealthy int `json:"unhealthy,omitempty"`
	// Active is the number of remediations in progress.
	// +optional
	Active int `json:"active,omitempty"`
	// Started is the number of remediations that began within the window.
	// +optional
	Started int `json:"started,omitempty"`
	// FailureDomains are the failure domains with unhealthy machines, remediations or a recent mass
	// failure. At most a hundred are listed, those with the most unhealthy machines.
	// +optional
	// +listType=map
	// +listMapKey=name
	FailureDomains []FailureDomainStatus `json:"failureDomains,omitempty"`
	// Message describes in one sentence which remediations begin now, or why none begins.
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailureDomainStatus is the state of a failure domain.
type FailureDomainStatus struct {
	// Name is the name of the failure domain, with its region if it has one: eastus/1.
	Name string `json:"name"`
	// +optional
	Machines int `json:"machines,omitempty"`
	// +optional
	Unhealthy int `json:"unhealthy,omitempty"`
	// Active is the number of remediations in progress in the failure domain.
	// +optional
	Active int `json:"active,omitempty"`
	// Failing is true during a mass failure: no replacement is created in the failure domain.
	// +optional
	Failing bool `json:"failing,omitempty"`
	// ClosedUntil is when the cooldown ends. Until then no replacement is created in the failure domain.
	// +optional
	ClosedUntil *metav1.Time `json:"closedUntil,omitempty"`
}

// RepairLimits limits the remediations of all RepairPolicies of the management cluster together.
// There is only one, with the name default. Without it the defaults of its fields apply.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=repairlimits,singular=repairlimits,scope=Cluster,categories=scute;cluster-api,shortName=rl
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="the only RepairLimits must have the name default",fieldPath=".metadata"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="Unhealthy",type=integer,JSONPath=`.status.unhealthy`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="At-Once",type=integer,JSONPath=`.spec.atOnce`
// +kubebuilder:printcolumn:name="Started",type=integer,JSONPath=`.status.started`
// +kubebuilder:printcolumn:name="Mass-Failure",type=string,JSONPath=`.status.conditions[?(@.type=="MassFailure")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
type RepairLimits struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec RepairLimitsSpec `json:"spec,omitempty"`
	// +optional
	Status RepairLimitsStatus `json:"status,omitempty"`

	// Unreadable is the part of the object that could not be decoded. It is not a field of the resource.
	Unreadable `json:"-"`
}

// RepairLimitsList is a list of RepairLimits.
//
// +kubebuilder:object:root=true
type RepairLimitsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RepairLimits `json:"items"`
}
