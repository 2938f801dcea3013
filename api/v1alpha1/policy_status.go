package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
