package v1alpha1

// RepairForensics keep failed workers after their replacement. When the replacement is ready and the owner deletes the machine, Cluster
// API drains its Node and detaches its volumes. Its infrastructure stays for a while, so that people can look at it. Machines of control
// planes are never kept: a member of etcd votes until its machine has no deletion hook any more.
type RepairForensics struct {
	// KeepFor is how long the infrastructure stays, from when the Node is drained and its volumes are detached.
	// +required
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="must be at least 1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('720h')",message="must be at most 720h"
	KeepFor Duration `json:"keepFor"`
	// AtMost is how many machines the policy keeps at once, in all clusters together. Others that are replaced meanwhile are not kept.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	AtMost int32 `json:"atMost,omitempty"`
}
