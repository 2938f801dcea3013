package remediator

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// Owner names what replaces machines. Its UID tells an owner from a later one of the same name.
type Owner struct {
	Kind      string    `json:"kind"` // an OwnerKind, or one that we do not know
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Cluster   string    `json:"cluster"`
}

// Facts are one look at an owner, its machines and their etcd. What could not be had is Unknown, with the reason.
type Facts struct {
	Owner    OwnerFacts
	Cluster  ClusterFacts
	Machines []Machine // of this owner, by name
	// Etcd is nil when it was not asked: NeedsEtcdProbe says when it must be.
	Etcd   *Etcd
	Policy Policy
	Ledger Ledger
	Fleet  Fleet
	// Asked says when etcd was asked before this look.
	Asked Asked
	Care  CareFacts
	// Move is the id of a move of this cluster that is in progress, from the log.
	Move string
	// less is how many replicas are left out, which belong to other remediations.
	less int32
}

// Nodes of the owner's machines.
func (f *Facts) Nodes() (nodes []string) {
	for m := range f.all() {
		if m.Node != "" {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}

// OwnerFacts are what the owner says of itself.
type OwnerFacts struct {
	Owner
	Found      bool
	Deleting   bool
	Paused     bool
	Replicas   int32 // as its spec asks for now
	Generation int64
	Observed   bool // its controller has seen this generation
	MaxSurge   int32
	// Sets are the MachineSets of a MachineDeployment: the older ones, the oldest first, and the current one last.
	Sets []string
	// Moving are those of them that move their machines to another one, for an update in place, and have not moved all yet.
	Moving []string
	// OnDelete: a MachineDeployment leaves outdated machines alone, and makes new ones in the current MachineSet.
	OnDelete     bool
	ExternalEtcd bool
	Version      string // of Kubernetes, as asked for
	// RollingOut describes a rollout or an upgrade in progress that scute did not start.
	RollingOut string
	// Tested: the minor version of the owner's controller is one whose inner bookkeeping we have tested.
	Tested bool
	// CertificateTrigger: the owner rolls machines out whose certificates are about to expire.
	CertificateTrigger bool
	// Retry bounds a control plane's own remediation of one machine after another.
	Retry Retry
	// Uninitialized: the control plane says of no API server yet that it was there (status.initialization.controlPlaneInitialized).
	Uninitialized bool
	// Refused says why the owner makes no machine though it is asked for one, in its own words: its preflight checks, or the API server, do not
	// let it. "" while it says nothing of that.
	Refused string
	// Relaxed is the value of KubeadmControlPlane's annotation remediation-in-progress, "" without.
	Relaxed string
	// Touched is the value of scute.dev/touched.
	Touched string
}

// Retry are a KubeadmControlPlane's bounds of its remediation (spec.remediation), with the defaults in place.
type Retry struct {
	Max *int32 // nil for no bound
	// Period between two remediations of what is taken for one machine, and how long one must be well to be taken for another.
	Period, MinHealthy time.Duration
}

// ClusterFacts are what the Cluster says.
type ClusterFacts struct {
	Found    bool
	UID      types.UID
	Deleting bool
	Paused   bool
	// Topology: the Cluster's topology manages the owner; replicas are asked for there.
	Topology         bool
	TopologyReplicas int32
	// Entry is the owner's name in the topology, "" for a control plane.
	Entry string
	// Entries are the replicas that the topology says, by those names. They can be read when the owner is gone.
	Entries map[string]int32
	// Initialized: its control plane has been (condition ControlPlaneInitialized).
	Initialized bool
	// UpgradePending: the topology has a version that the owner does not have yet.
	UpgradePending bool
	// Reach: the workload cluster's API server answers. Absent when it was not asked.
	Reach object.Truth
	// BlindFor is how long every look was Blind, up to this one; the runner remembers it. 0 for the first such look.
	BlindFor time.Duration
	// FailureDomains that control plane machines may be in.
	FailureDomains []string
	// Region tells its failure domains from those of the same name in other regions; "" for none.
	Region string
}

// Condition of a Machine.
type Condition struct {
	Status object.Truth
	Reason string
	Since  time.Time
}

// Machine is what a Machine says, and what was written on it.
type Machine struct {
	Name    string
	UID     types.UID
	Created time.Time
	// Startup is when the control plane of its cluster was initialized, or the infrastructure of the cluster or of the machine became ready,
	// whichever is last. The time in which it must get a Node does not begin before.
	Startup time.Time
	// Exempt machines are not checked: workers before the control plane of their cluster is initialized, and all machines while the cluster has
	// no infrastructure. A MachineHealthCheck exempts them too.
	Exempt        bool
	Deleting      bool
	DeletingSince time.Time
	Node          string
	FailureDomain string
	Set           string // the MachineSet that has it, "" without
	Conditions    map[string]Condition
	// Draining, and Detaching, are since when its deletion has waited for the drain of its Node, or for the Node's volumes to be
	// detached; zero when it waits for neither.
	Draining, Detaching time.Time
	// SkipsDrain and SkipsDetach say that its deletion is told not to wait for that.
	SkipsDrain, SkipsDetach bool
	// Hooks are deletion hooks of somebody other than the owner and scute, by phase and name: pre-drain/backup.
	Hooks []string

	Paused     bool
	Skip       bool   // cluster.x-k8s.io/skip-remediation
	Remediate  bool   // cluster.x-k8s.io/remediate-machine: an operator asks for it
	DeleteMark string // value of cluster.x-k8s.io/delete-machine; "" without
	// Mark is the value of scute.dev/unhealthy, "" without.
	Mark string
	// Needed is the value of scute.dev/needed, "" without.
	Needed string
	// Certificates is the value of machine.cluster.x-k8s.io/certificates-expiry, "" without.
	Certificates string
	// CertificatesStatus is the Machine's status.certificatesExpiryDate in RFC 3339, "" without. Its owner reads that, and
	// the Machine's own controller sets it from the annotation, some time later.
	CertificatesStatus string
	// ClonedFrom is the value of cluster.x-k8s.io/cloned-from-name on its infrastructure machine.
	ClonedFrom string
	// RemediationFor is the value of controlplane.cluster.x-k8s.io/remediation-for, "" without.
	RemediationFor string

	// Unwired names a MachineHealthCheck that remediates the machine without scute, "" without.
	Unwired string
	// Passed says whether the MachineHealthChecks that ask scute about the machine find it healthy, as they find each of theirs; Absent when
	// there is none.
	Passed object.Truth

	// StepObjects are the escalation steps whose object exists for this machine: those of the policy, and those in the log.
	StepObjects []string
	// FailedSteps are those of them that have failed, with what their objects say.
	FailedSteps map[string]string

	// OnNode is what its Node says in its own cluster, nil where it was not read: it is read only where the policy
	// needs it.
	OnNode *NodeLook

	// Annotations of the Machine that the policy's notices name.
	Annotations map[string]string

	Request *Request // its SurgeRemediation, nil without
}

// NodeLook is one look at a machine's Node in its own cluster.
type NodeLook struct {
	// Err says why the Node could not be read, "" when it could.
	Err string
	// Conditions of the Node; nil when it does not exist.
	Conditions map[string]Condition
	// Taints are the values of its taints by their keys, and Annotations those of its annotations; of both only what the policy's
	// notices name.
	Taints, Annotations map[string]string
}

// Request is what a SurgeRemediation says.
type Request struct {
	UID       types.UID
	Created   time.Time
	Deleting  bool
	ByHand    bool // it is not the Machine's: neither a MachineHealthCheck nor scute made it
	Hold      bool
	HoldUntil time.Time // zero with Hold: until it is taken off
	HoldWhy   string
	Abort     bool
	Carried   bool // what earlier requests of the machine said has been written on it
}

// Etcd is what each member answered, asked itself.
type Etcd struct {
	// Err says why the members could not be listed; then Members is empty.
	Err     string
	Members []Member
	// Alarms that are raised, with the member: "NOSPACE of node-1".
	Alarms []string
	// ByQuorum: etcd accepts a new member while a majority of the members with it are connected (from 3.6.11), and not only while all are.
	ByQuorum bool
}

// Member of etcd.
type Member struct {
	Node string // the name it has in etcd, which is its node's
	// Namesake is the node whose name it has though another member is that node's, "" without: a machine had that name before.
	Namesake string
	Learner  bool
	Leader   bool
	// Unstarted: it was added, and has not told its name yet.
	Unstarted bool
	// Answers: True, False (it was reached, and is not well, or refuses), Unknown (it could not be asked).
	Answers object.Truth
	// Why it does not answer, or why it was not asked by a port-forward to its pod.
	Why string
	// Way by which it was asked, in words: PortForward, its client port, or etcdctl in the pod of another member.
	Way string
	// Size of its database in bytes, how much of it is in use, and the quota; each 0 when it is not known.
	Size, InUse, Quota int64
}

// PortForward to its pod is the way by which a member is asked first.
const PortForward = "port-forward"

// Policy is the RepairPolicy that selects the owner, with its defaults in place.
type Policy struct {
	Name string // "" when none selects it
	UID  types.UID
	// Unreadable says why the policy cannot be read, "" when it can. Then nothing else of it is known.
	Unreadable string
	DryRun     bool
	Paused     []string
	Checks     Checks
	Methods    map[v1alpha1.RepairMethod]bool // allowed
	Accepts    bool                           // delete-first where maxSurge is 0
	Guards     bool                           // machines that etcd needs against people who delete them
	Hold       time.Duration
	Escalation []EscalationStep
	Limits     Limits
	Timeouts   Timeouts
	Removal    Removal
	// Hooks are names of deletion hooks that keep no machine from being replaced, or with a * at the end, how they begin.
	Hooks    []string
	Attempts int
	// Survey is how often etcd is asked though no machine needs it; 0 for never.
	Survey time.Duration
	// Defragmentation of etcd's databases.
	Defragmentation Defragmentation
}

// EscalationStep is an escalation step before a replacement.
type EscalationStep struct {
	Name    string
	Timeout time.Duration
	// APIVersion and Kind of the object that is made.
	APIVersion, Kind string
}

// Checks say when a machine is unhealthy.
type Checks struct {
	NodeStartup time.Duration
	Machine     []Check
	Node        []Check // of them, Ready is read from the Machine, and the others from the Node itself
	Notices     []Notice
}

// Check of one condition.
type Check struct {
	Type    string
	Status  object.Truth
	Timeout time.Duration
}

// Limits of a policy.
type Limits struct {
	AtOnce, PerWindow int
	// WorkersAtOnce is how many workers of one owner may be replaced at once; 0 is 1.
	WorkersAtOnce int
	Window        time.Duration
	MassFailure   MassFailure
	Cooldown      time.Duration
}

// Timeouts of a policy.
type Timeouts struct{ ScaleUp, Ready, Removal time.Duration }

// Removal bounds what the deletion of a machine waits for; 0 is no bound.
type Removal struct{ Drain, Detach time.Duration }

// Ledger is the usage of the policy's limits: what is in progress and was observed, all its owners together, this one
// not counted.
type Ledger struct {
	Active    int         // remediations in progress that count
	Started   []time.Time // begun, as far back as the window
	Watched   int         // machines, this owner's too
	Unhealthy int         // of them unhealthy, this owner's too
	// MassFailureEnded is when the last mass failure of the policy ended, zero without.
	MassFailureEnded time.Time
}

// all returns the owner's machines.
func (f *Facts) all() iter.Seq[*Machine] {
	return func(yield func(*Machine) bool) {
		for i := range f.Machines {
			if !yield(&f.Machines[i]) {
				return
			}
		}
	}
}

// find returns the first element that fits, or nil.
func find[T any](list []T, fits func(*T) bool) *T {
	for i := range list {
		if fits(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// staying counts the machines that are not being deleted.
func (f *Facts) staying() int {
	return len(f.Machines) - f.leaving()
}

// wanted is how many machines people want. Where the Cluster's topology says it, the owner follows a moment later.
func (f *Facts) wanted() int32 {
	if f.Cluster.Topology {
		return f.Cluster.TopologyReplicas
	}
	return f.Owner.Replicas
}

// starting reports that a control plane has not been initialized: nothing runs yet that could be lost with its only machine, and its owner
// remediates that machine without looking at quorum (reconcileUnhealthyMachines). A restore or a move may lose the status of a control plane
// that runs. Such a control plane is recognized by a Node, by a second machine, which its owner makes no sooner, or by the time at which
// certificates expire, which its owner reads from a Node that serves.
func (f *Facts) starting() bool {
	ran := slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Node != "" || m.Certificates != "" || m.CertificatesStatus != "" })
	return f.isControlPlane() && f.Owner.Uninitialized && !f.Cluster.Initialized && f.staying() <= 1 && !ran
}

// leaving counts the machines that are being deleted.
func (f *Facts) leaving() int {
	n := 0
	for i := range f.Machines {
		n += count(f.Machines[i].Deleting)
	}
	return n
}
