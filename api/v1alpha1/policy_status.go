package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RepairPolicyStatus shows the machines of the policy and its remediations.
type RepairPolicyStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Clusters is the number of selected Clusters.
	// +optional
	Clusters int `json:"clusters,omitempty"`
	// Machines is the number of watched machines.
	// +optional
	Machines int `json:"machines,omitempty"`
	// Unhealthy is the number of these machines that are unhealthy.
	// +optional
	Unhealthy int `json:"unhealthy,omitempty"`
	// Active is the number of remediations in progress.
	// +optional
	Active int `json:"active,omitempty"`
	// Message describes in one sentence what the policy does now, or why it does nothing.
	// +optional
	Message string `json:"message,omitempty"`
	// MassFailure is true during a mass failure, and until its cooldown has ended.
	// +optional
	MassFailure bool `json:"massFailure,omitempty"`
	// History lists the last remediations that have ended, newest first.
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

// MostEtcdProblems is the maximum number of etcd problems in the status of a RepairPolicy.
const MostEtcdProblems = 20

// EtcdProblemKind is a kind of problem of an etcd cluster.
type EtcdProblemKind string

// The kinds of problems. The first two are alarms of etcd.
const (
	EtcdCorrupt    EtcdProblemKind = "Corrupt"    // the data of a member differs from the data of the others
	EtcdNoSpace    EtcdProblemKind = "NoSpace"    // the database has reached its quota
	EtcdNearQuota  EtcdProblemKind = "NearQuota"  // the database is near its quota
	EtcdFragmented EtcdProblemKind = "Fragmented" // much of the database is free space, which counts towards its quota
)

// Alarm reports whether the problem is an alarm of etcd, which affects all members.
func (k EtcdProblemKind) Alarm() bool { return k == EtcdCorrupt || k == EtcdNoSpace }

// EtcdProblem is a problem of a control plane's etcd.
type EtcdProblem struct {
	Cluster      string `json:"cluster"`
	ControlPlane string `json:"controlPlane"`
	// Problem is an alarm of etcd (Corrupt or NoSpace), or a problem with the size of its database
	// (NearQuota or Fragmented).
	Problem EtcdProblemKind `json:"problem"`
	// Members are the nodes of the affected members.
	// +optional
	// +listType=atomic
	Members []string `json:"members,omitempty"`
	// Message describes the problem in one sentence.
	Message string `json:"message"`
	// Next is what a user can do.
	// +optional
	Next string `json:"next,omitempty"`
	// Since is when the problems of this etcd last changed.
	Since metav1.Time `json:"since"`
}

// MostPastRemediations is the maximum length of the history in the status of a RepairPolicy.
const MostPastRemediations = 10

// PastRemediation is a remediation that has ended.
type PastRemediation struct {
	// Machine is the name of the remediated machine.
	Machine string `json:"machine"`
	// Cluster is the name of the machine's cluster.
	// +optional
	Cluster string `json:"cluster,omitempty"`
	// Owner is the owner that was asked for a replacement, as Kind/name.
	// +optional
	Owner string `json:"owner,omitempty"`
	// Reason is why the machine was remediated.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Method is RolloutSurge, Surge or OwnerRemediation, or Escalate if an escalation step made the machine
	// healthy. It ends with " (relaxed)" for a surge with relaxed preflight checks of the owner.
	// +optional
	Method string `json:"method,omitempty"`
	// Outcome is the final phase.
	Outcome RemediationPhase `json:"outcome"`
	// Replacement is the name of the machine that replaced the machine, or was created to replace it.
	// +optional
	Replacement string `json:"replacement,omitempty"`
	// Message describes the result in one sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// StartedAt is when the remediation began.
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when the remediation ended.
	FinishedAt metav1.Time `json:"finishedAt"`
}
