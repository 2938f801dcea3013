package machine

import (
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// Cluster is a workload cluster with its machines.
type Cluster struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Paused    bool     `json:"paused,omitempty"`
	Deleting  bool     `json:"deleting,omitempty"`
	Owners    []*Owner `json:"owners"`
}

// Owner is the owner of machines, which replaces them.
type Owner struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Replicas *int32 `json:"replicas"` // desired; nil if the owner could not be read
	Version  string `json:"version,omitempty"`
	// Running lists the versions of machines that differ from Version.
	Running string `json:"running,omitempty"`
	Paused  bool   `json:"paused,omitempty"`
	// ControlPlane means that its machines run the control plane's components.
	ControlPlane bool `json:"controlPlane"`
	// Policy selects its machines; nil without a policy.
	Policy *Policy `json:"policy"`
	// Quorum is the last result of asking etcd's members; nil if scute has not asked them.
	Quorum *v1alpha1.QuorumStatus `json:"quorum"`
	// Silent lists the nodes of the voters that did not respond at ProbedAt. Both are known from the log only.
	Silent   []string  `json:"silent,omitempty"`
	ProbedAt time.Time `json:"probedAt,omitzero"`
	// Leader and Learners are the nodes of etcd's members in these roles, when etcd was last asked.
	Leader   string   `json:"leader,omitempty"`
	Learners []string `json:"learners,omitempty"`
	// Databases and Problems of etcd, as last recorded. Each problem names its remedy.
	Databases []remediator.Database  `json:"databases,omitempty"`
	Problems  []v1alpha1.EtcdProblem `json:"etcdProblems,omitempty"`
	// Listed counts etcd's members by Cluster API's conditions. These show which members exist, but not which respond.
	Listed   *Members   `json:"listed"`
	External bool       `json:"externalEtcd,omitempty"`
	Machines []*Machine `json:"machines"`
	// Gone lists deleted machines whose replacement is not ready yet. They are known from the log only.
	Gone []*Machine `json:"gone,omitempty"`

	reportedAt time.Time // time of the last report of etcd's members in the log

	ready int // machines whose Node is ready, including those that are not shown

	times   remediator.Policy // what the policy waits for, and its timeouts
	objects []*clusterv1.Machine
}

// Members counts etcd's members by condition.
type Members struct {
	Members int `json:"members"`
	Healthy int `json:"healthy"`
}

// Policy is the RepairPolicy that selects machines.
type Policy struct {
	Name string `json:"name"`
	// Unreadable is the reason why it cannot be read, "" if it can.
	Unreadable    string   `json:"unreadable,omitempty"`
	DryRun        bool     `json:"dryRun,omitempty"`
	PauseRequests []string `json:"pauseRequests,omitempty"`
	MassFailure   bool     `json:"massFailure,omitempty"`
}

// Machine is a machine as shown to the user.
type Machine struct {
	Name      string    `json:"name"`
	Node      string    `json:"node"`
	Zone      string    `json:"failureDomain,omitempty"`
	Version   string    `json:"version,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// NotReadySince is when the Node became not ready; zero while it is ready.
	NotReadySince time.Time              `json:"notReadySince,omitzero"`
	Phase         string                 `json:"phase"` // of Cluster API
	Deleting      bool                   `json:"deleting,omitempty"`
	NodeReady     object.ConditionStatus `json:"nodeReady"`
	// Etcd is the condition EtcdMemberHealthy.
	Etcd object.ConditionStatus `json:"etcd"`
	// Pods contains the conditions of the pods, in the order of components().
	Pods []object.ConditionStatus `json:"pods,omitempty"`
	// Silent means that its voter did not respond when scute last asked it.
	Silent bool `json:"silent,omitempty"`
	// IsLeader and IsLearner mean that its member was the leader or a learner when etcd was last asked.
	IsLeader  bool `json:"isLeader,omitempty"`
	IsLearner bool `json:"isLearner,omitempty"`
	// EtcdMessage is the message of the condition EtcdMemberHealthy.
	EtcdMessage string `json:"etcdMessage,omitempty"`
	// HealthCheck is the condition HealthCheckSucceeded, and HealthCheckMessage its message.
	HealthCheck        object.ConditionStatus `json:"healthCheck"`
	HealthCheckMessage string                 `json:"healthCheckMessage,omitempty"`
	// Mark is scute's mark, on the Machine or in the log; nil without a mark.
	Mark *v1alpha1.UnhealthyMark `json:"mark"`
	// Annotations lists the annotations that pause the machine, or that request or prevent its remediation or deletion.
	Annotations []string `json:"annotations,omitempty"`
	// Remediation is nil if the machine has none.
	Remediation *Remediation `json:"remediation"`
}

// Remediation is the remediation of a machine, from the log or from its SurgeRemediation.
type Remediation struct {
	Phase       v1alpha1.RemediationPhase `json:"phase"`
	Decision    string                    `json:"decision,omitempty"`
	Message     string                    `json:"message,omitempty"`
	Next        string                    `json:"next,omitempty"`
	Replacement string                    `json:"replacement,omitempty"`
	Attempts    int                       `json:"attempts,omitempty"`
	// Outlook describes what happens next; nil without the log.
	Outlook *remediator.Outlook `json:"outlook,omitempty"`
}

// Health is the health of a machine in a word.
type Health string

// Values of Health.
const (
	Healthy   Health = "healthy"
	Unhealthy Health = "unhealthy" // according to a health check or scute
	Degraded  Health = "ailing"    // something is wrong, but neither a health check nor scute has marked it unhealthy
	Starting  Health = "starting"
	Deleting  Health = "leaving"
)

// markFailing is the state of an UnhealthyMark before the machine counts as unhealthy.
const (
	markFailing = "Failing"
)

// Health returns the health of the machine, from its conditions and its mark.
func (m *Machine) Health() Health {
	switch {
	case m.Deleting:
		return Deleting
	case m.Mark != nil && m.Mark.State != markFailing, m.HealthCheck == object.False:
		return Unhealthy
	case m.Mark != nil:
		return Degraded
	case m.Node == "":
		return Starting
	case m.NodeReady == object.False || m.NodeReady == object.Unknown, m.Etcd == object.False || m.Etcd == object.Unknown:
		return Degraded
	}
	for _, pod := range m.Pods {
		if pod == object.False || pod == object.Unknown {
			return Degraded
		}
	}
	return Healthy
}

// since returns when the machine became unhealthy; zero while it is healthy or starting, or if the time is unknown.
func (m *Machine) since() time.Time {
	switch {
	case m.Mark != nil && !m.Mark.Since.IsZero():
		return m.Mark.Since.Time
	case m.Health() == Healthy || m.Health() == Starting:
		return time.Time{}
	}
	return m.NotReadySince
}

// stateNotes returns the machine's annotations, and what stops its remediation, in the words of the documentation.
func (m *Machine) stateNotes() []string {
	var out []string
	for _, a := range m.Annotations {
		name := strings.TrimSuffix(strings.TrimPrefix(a, "cluster.x-k8s.io/"), "-machine")
		out = append(out, strings.TrimSuffix(name, "-remediation"))
	}
	if r := m.Remediation; r != nil && r.Outlook != nil {
		for _, mark := range []struct {
			is   bool
			name string
		}{{r.Outlook.Held, "held"}, {r.Outlook.Aborted, "aborted"}, {r.Outlook.Frozen, "frozen"}} {
			if mark.is {
				out = append(out, mark.name)
			}
		}
	}
	return out
}

// needsAttention reports whether the machine is marked, remediated or not healthy.
func (m *Machine) needsAttention() bool {
	return m.Mark != nil || m.Remediation != nil || m.Health() == Unhealthy || m.Health() == Degraded
}
