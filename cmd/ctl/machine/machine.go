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

// Owner of machines: what replaces them.
type Owner struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Replicas *int32 `json:"replicas"` // wanted; nil when the owner could not be read
	Version  string `json:"version,omitempty"`
	// Running are the versions of its machines that are not that one.
	Running string `json:"running,omitempty"`
	Paused  bool   `json:"paused,omitempty"`
	// ControlPlane says that its machines have the control plane's components.
	ControlPlane bool `json:"controlPlane"`
	// Policy that selects its machines; nil without.
	Policy *Policy `json:"policy"`
	// Quorum as scute saw it last, when it asked etcd's members; nil if it did not.
	Quorum *v1alpha1.QuorumStatus `json:"quorum"`
	// Silent are the voters that did not answer then, by their nodes, and AskedAt when that was; of the log alone.
	Silent  []string  `json:"silent,omitempty"`
	AskedAt time.Time `json:"askedAt,omitzero"`
	// Leader and Learners of etcd, by their nodes, when it was asked last.
	Leader   string   `json:"leader,omitempty"`
	Learners []string `json:"learners,omitempty"`
	// Databases of etcd, and its problems with what to do about them, as they were recorded last.
	Databases []remediator.Database  `json:"databases,omitempty"`
	Problems  []v1alpha1.EtcdProblem `json:"etcdProblems,omitempty"`
	// Listed counts etcd's members by Cluster API's conditions, which say who is a member, and not who answers.
	Listed   *Members   `json:"listed"`
	External bool       `json:"externalEtcd,omitempty"`
	Machines []*Machine `json:"machines"`
	// Gone are machines that are no more, and whose replacement is not ready yet; of the log alone.
	Gone []*Machine `json:"gone,omitempty"`

	reportedAt time.Time // what etcd's members said, in the log

	ready int // of its machines, those whose Node is, also where few are shown

	times   remediator.Policy // of the policy: what it waits for, and how long
	objects []*clusterv1.Machine
}

// Members of etcd by conditions.
type Members struct {
	Members int `json:"members"`
	Healthy int `json:"healthy"`
}

// Policy that selects machines.
type Policy struct {
	Name string `json:"name"`
	// Unreadable says why it cannot be read, "" when it can.
	Unreadable    string   `json:"unreadable,omitempty"`
	DryRun        bool     `json:"dryRun,omitempty"`
	PauseRequests []string `json:"pauseRequests,omitempty"`
	Storm         bool     `json:"storm,omitempty"`
}

// Machine is what is shown of a machine.
type Machine struct {
	Name      string    `json:"name"`
	Node      string    `json:"node"`
	Zone      string    `json:"failureDomain,omitempty"`
	Version   string    `json:"version,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// NotReadySince is when the Node stopped being ready; zero while it is.
	NotReadySince time.Time    `json:"notReadySince,omitzero"`
	Phase         string       `json:"phase"` // of Cluster API
	Deleting      bool         `json:"deleting,omitempty"`
	NodeReady     object.Truth `json:"nodeReady"`
	// Etcd is the condition EtcdMemberHealthy.
	Etcd object.Truth `json:"etcd"`
	// Pods are the components, in the order of Components.
	Pods []object.Truth `json:"pods,omitempty"`
	// Silent: its voter did not answer when scute asked it last.
	Silent bool `json:"silent,omitempty"`
	// Leads, and Learns, say that its member led, or was a learner, when etcd was asked last.
	Leads  bool `json:"leads,omitempty"`
	Learns bool `json:"learns,omitempty"`
	// EtcdWhy says why Etcd is not True.
	EtcdWhy string `json:"etcdWhy,omitempty"`
	// HealthCheck is the condition HealthCheckSucceeded, and why.
	HealthCheck    object.Truth `json:"healthCheck"`
	HealthCheckWhy string       `json:"healthCheckWhy,omitempty"`
	// Mark of scute's, on the Machine or in the log; nil without.
	Mark *v1alpha1.UnhealthyMark `json:"mark"`
	// Unselected and the like: what keeps others from touching it.
	Annotations []string `json:"annotations,omitempty"`
	// Remediation of it; nil without.
	Remediation *Remediation `json:"remediation"`
}

// Remediation of a machine, from its SurgeRemediation.
type Remediation struct {
	Phase       v1alpha1.RemediationPhase `json:"phase"`
	Decision    string                    `json:"decision,omitempty"`
	Message     string                    `json:"message,omitempty"`
	Next        string                    `json:"next,omitempty"`
	Replacement string                    `json:"replacement,omitempty"`
	Attempts    int                       `json:"attempts,omitempty"`
	// Ahead is what happens next, as the log has it; nil without the log.
	Ahead *remediator.Outlook `json:"ahead,omitempty"`
}

// Health of a machine in a word.
type Health string

// The healths.
const (
	Healthy   Health = "healthy"
	Unhealthy Health = "unhealthy" // a health check, or scute, says so
	Ailing    Health = "ailing"    // something is not well, and nobody has called it unhealthy
	Starting  Health = "starting"
	Leaving   Health = "leaving"
)

// The states of a mark, as UnhealthyMark has them.
const (
	markFailing = "Failing"
)

// Health of the machine, from what it says and what was written on it.
func (m *Machine) Health() Health {
	switch {
	case m.Deleting:
		return Leaving
	case m.Mark != nil && m.Mark.State != markFailing, m.HealthCheck == object.False:
		return Unhealthy
	case m.Mark != nil:
		return Ailing
	case m.Node == "":
		return Starting
	case m.NodeReady == object.False || m.NodeReady == object.Unknown, m.Etcd == object.False || m.Etcd == object.Unknown:
		return Ailing
	}
	for _, pod := range m.Pods {
		if pod == object.False || pod == object.Unknown {
			return Ailing
		}
	}
	return Healthy
}

// since is when it became what it is: zero while it is well, or when nobody says.
func (m *Machine) since() time.Time {
	switch {
	case m.Mark != nil && !m.Mark.Since.IsZero():
		return m.Mark.Since.Time
	case m.Health() == Healthy || m.Health() == Starting:
		return time.Time{}
	}
	return m.NotReadySince
}

// marks are what was written on it, and what keeps or moves its remediation, in the words of the documentation.
func (m *Machine) marks() []string {
	var out []string
	for _, a := range m.Annotations {
		name := strings.TrimSuffix(strings.TrimPrefix(a, "cluster.x-k8s.io/"), "-machine")
		out = append(out, strings.TrimSuffix(name, "-remediation"))
	}
	if r := m.Remediation; r != nil && r.Ahead != nil {
		for _, mark := range []struct {
			is   bool
			name string
		}{{r.Ahead.Held, "held"}, {r.Ahead.Aborted, "aborted"}, {r.Ahead.Frozen, "frozen"}} {
			if mark.is {
				out = append(out, mark.name)
			}
		}
	}
	return out
}

// needsAttention says that there is something to tell about the machine.
func (m *Machine) needsAttention() bool {
	return m.Mark != nil || m.Remediation != nil || m.Health() == Unhealthy || m.Health() == Ailing
}
