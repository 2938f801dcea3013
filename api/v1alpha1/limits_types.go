package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RepairLimitsName is the name of the one RepairLimits that there is.
const RepairLimitsName = "default"

// DefaultRegionLabel is where failure domains of the same name are told apart by, unless the RepairLimits say otherwise.
const DefaultRegionLabel = "topology.kubernetes.io/region"

// RepairLimitsSpec bounds what all RepairPolicies together begin. Each field has a default, which holds without a RepairLimits
// too.
type RepairLimitsSpec struct {
	// PauseRequests, as long as there is one, keep all policies from beginning anything; each says why.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	PauseRequests []string `json:"pauseRequests,omitempty"`
	// AtOnce bounds the remediations in progress at the same time, of all policies together.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// PerWindow bounds the remediations begun within Window.
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
	// MassFailure is when so many machines are unhealthy at once that something bigger is broken: nothing is begun. Machines of
	// a failure domain that fails by itself are not counted.
	// +optional
	MassFailure FleetMassFailure `json:"massFailure,omitzero"`
	// FailureDomains have separate limits, one per failure domain.
	// +optional
	FailureDomains FailureDomainLimits `json:"failureDomains,omitzero"`
}

// FleetMassFailure is when the fleet has a mass failure.
type FleetMassFailure struct {
	// Percent of the machines that RepairPolicies select, and never fewer than Floor machines, are unhealthy at once.
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
	// Cooldown is how long nothing is begun after a mass failure.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// FailureDomainLimits are those of each failure domain. A failure domain is what Cluster API calls one: machines of different
// clusters that have the same one are counted together.
type FailureDomainLimits struct {
	// AtOnce bounds the remediations in progress at the same time of machines of one failure domain.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	AtOnce int32 `json:"atOnce,omitempty"`
	// MassFailure is when a failure domain fails: nothing is begun whose replacement would be made there.
	// +optional
	MassFailure FailureDomainMassFailure `json:"massFailure,omitzero"`
	// RegionLabel is a label of Clusters: failure domains that have the same name are two where its values differ. Some
	// infrastructure numbers them in each region by itself.
	// +optional
	// +kubebuilder:default="topology.kubernetes.io/region"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	RegionLabel string `json:"regionLabel,omitempty"`
}

// FailureDomainMassFailure is when a failure domain fails.
type FailureDomainMassFailure struct {
	// Percent of the failure domain's machines that RepairPolicies select, and never fewer than Floor machines, are unhealthy
	// at once.
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
	// Cooldown is how long nothing is sent into a failure domain after its mass failure.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('8760h')",message="must be at most 8760h, a year"
	Cooldown *Duration `json:"cooldown,omitempty"`
}

// RepairLimitsStatus says how much of the limits is in use.
type RepairLimitsStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Machines that RepairPolicies select.
	// +optional
	Machines int `json:"machines,omitempty"`
	// Unhealthy of them.
	// +optional
	Unhealthy int `json:"unhealthy,omitempty"`
	// Active remediations.
	// +optional
	Active int `json:"active,omitempty"`
	// Begun is how many remediations were begun within the window.
	// +optional
	Begun int `json:"begun,omitempty"`
	// FailureDomains in which something is unhealthy or in progress, or which failed a short time ago; of more than a hundred,
	// those with the most unhealthy machines.
	// +optional
	// +listType=map
	// +listMapKey=name
	FailureDomains []FailureDomainStatus `json:"failureDomains,omitempty"`
	// Message says in one sentence what is begun now, or why nothing is.
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FailureDomainStatus is what is known of one failure domain.
type FailureDomainStatus struct {
	// Name of the failure domain, behind its region where it has one: eastus/1.
	Name string `json:"name"`
	// +optional
	Machines int `json:"machines,omitempty"`
	// +optional
	Unhealthy int `json:"unhealthy,omitempty"`
	// Active remediations of its machines.
	// +optional
	Active int `json:"active,omitempty"`
	// Failing: nothing is sent into it.
	// +optional
	Failing bool `json:"failing,omitempty"`
	// ClosedUntil is when its cooldown ends: nothing is sent into it before.
	// +optional
	ClosedUntil *metav1.Time `json:"closedUntil,omitempty"`
}

// RepairLimits bounds what all RepairPolicies of the management cluster begin together. There is one, named default; without it
// the defaults of its fields hold.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=repairlimits,singular=repairlimits,scope=Cluster,categories=scute;cluster-api,shortName=rl
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="there is one RepairLimits, and its name is default",fieldPath=".metadata"
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="Unhealthy",type=integer,JSONPath=`.status.unhealthy`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="At-Once",type=integer,JSONPath=`.spec.atOnce`
// +kubebuilder:printcolumn:name="Begun",type=integer,JSONPath=`.status.begun`
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

	// Unreadable is what could not be read of it; it is not of the resource.
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
