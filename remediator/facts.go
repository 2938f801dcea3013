package remediator

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
)

// Owner identifies an owner of machines. The UID distinguishes it from a later owner with the same name.
type Owner struct {
	Kind      string    `json:"kind"` // an OwnerKind, or an unknown kind
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Cluster   string    `json:"cluster"`
}

// Facts contains one observation of an owner, its machines and their etcd. A value that could not
// be read is Unknown, with the reason.
type Facts struct {
	Owner    OwnerFacts
	Cluster  ClusterFacts
	Machines []Machine // of this owner, by name
	// Etcd is nil if its members were not queried; see NeedsEtcdProbe.
	Etcd         *Etcd
	Policy       Policy
	Ledger       Ledger
	Fleet        Fleet
	EtcdRequests EtcdRequests
	Maintenance  MaintenanceFacts
	// Move is the ID of a move of this cluster that is in progress, from the log.
	Move string
	// excludedReplicas is the number of replicas that activeView subtracted because they belong to
	// resting remediations.
	excludedReplicas int32
}

// Nodes returns the nodes of the owner's machines.
func (f *Facts) Nodes() (nodes []string) {
	for m := range f.all() {
		if m.Node != "" {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}

// OwnerFacts are the facts about the owner's object.
type OwnerFacts struct {
	Owner
	Found    bool
	Deleting bool
	Paused   bool
	Replicas int32 // in its spec
	Observed bool  // its controller has observed this generation
	MaxSurge int32
	// Sets contains the MachineSets of a MachineDeployment, the oldest first, except that the
	// current one is last.
	Sets []string
	// Moving contains those of the Sets that still have to move machines to another MachineSet, for
	// an in-place update.
	Moving []string
	// OnDelete reports whether a MachineDeployment keeps outdated machines until they are deleted.
	OnDelete     bool
	ExternalEtcd bool
	Version      string // of Kubernetes, in its spec
	// RollingOut describes a rollout or an upgrade in progress that scute did not start.
	RollingOut string
	// Tested reports whether scute was tested with the annotations that this minor version of the
	// owner's controller uses internally (remediation-in-progress and cloned-from-name).
	Tested bool
	// CertificateTrigger reports whether the owner replaces machines before their certificates expire.
	CertificateTrigger bool
	// Retry contains the limits of a control plane's own retries of a remediation.
	Retry Retry
	// Uninitialized reports whether status.initialization.controlPlaneInitialized is not true yet.
	Uninitialized bool
	// Refused is the owner's message that its preflight checks or the API server prevent it from
	// creating a machine, or "".
	Refused string
	// Relaxed is the value of KubeadmControlPlane's annotation remediation-in-progress, or "".
	Relaxed string
	// Touched is the value of scute.dev/touched.
	Touched string
}

// Retry contains the limits of a KubeadmControlPlane's own retries of a remediation
// (spec.remediation), with the defaults.
type Retry struct {
	Max *int32 // nil for no bound
	// Period is the minimum time between the remediation of a machine and the remediation of its
	// replacement. A replacement that fails after it was healthy for MinHealthy does not count as a
	// retry.
	Period, MinHealthy time.Duration
}

// ClusterFacts are the facts about the Cluster.
type ClusterFacts struct {
	Found    bool
	UID      types.UID
	Deleting bool
	Paused   bool
	// Topology reports whether the Cluster's topology sets the owner's replicas.
	Topology         bool
	TopologyReplicas int32
	// Entry is the owner's name in the topology, "" for a control plane.
	Entry string
	// Entries contains the replicas in the topology, by entry. They are known even if the owner is
	// gone.
	Entries map[string]int32
	// Initialized reports whether its condition ControlPlaneInitialized is True.
	Initialized bool
	// UpgradePending reports whether the topology has a version that the owner does not have yet.
	UpgradePending bool
	// Reachable is True if the workload cluster's API server answers, and Absent if it was not
	// queried.
	Reachable object.ConditionStatus
	// BlindFor is the time for which every observation has been Blind, measured by the runner.
	BlindFor time.Duration
	// FailureDomains are the failure domains for control plane machines.
	FailureDomains []string
	// Region is part of the names of failure domains, because other regions may have failure
	// domains of the same name; "" for none.
	Region string
}

// Condition is a condition of a Machine or a Node.
type Condition struct {
	Status object.ConditionStatus
	Reason string
	Since  time.Time
}

// Machine contains the facts about a Machine.
type Machine struct {
	Name    string
	UID     types.UID
	Created time.Time
	// Startup is the latest of three times: when the control plane of the cluster was initialized,
	// when the infrastructure of the cluster became ready, and when that of the machine did. The
	// startup timeout does not begin before it.
	Startup time.Time
	// Exempt means that the machine is not checked, because it is a worker whose control plane is
	// not initialized, or the cluster's infrastructure is not ready. A MachineHealthCheck does not
	// check it either.
	Exempt        bool
	Deleting      bool
	DeletingSince time.Time
	Node          string
	FailureDomain string
	Set           string // its MachineSet, or ""
	Conditions    map[string]Condition
	// Draining is when the machine's deletion began to wait for the drain of its Node, and
	// Detaching when it began to wait for the detachment of volumes. Each is zero if the deletion
	// does not wait for that.
	Draining, Detaching time.Time
	// SkipsDrain and SkipsDetach report whether annotations make the deletion skip these waits.
	SkipsDrain, SkipsDetach bool
	// Hooks contains the deletion hooks, except the owner's, as phase/name, for example
	// pre-drain/backup.
	Hooks []string

	Paused           bool
	Skip             bool   // cluster.x-k8s.io/skip-remediation
	Remediate        bool   // cluster.x-k8s.io/remediate-machine, by an operator
	DeleteAnnotation string // value of cluster.x-k8s.io/delete-machine, or ""
	// UnhealthyAnnotation is the value of scute.dev/unhealthy, or "".
	UnhealthyAnnotation string
	// Needed is the value of scute.dev/needed, or "".
	Needed string
	// Certificates is the value of machine.cluster.x-k8s.io/certificates-expiry, or "".
	Certificates string
	// CertificatesStatus is the Machine's status.certificatesExpiryDate in RFC 3339, or "". The
	// owner reads this field. The Machine's controller copies it from the annotation, some time
	// later.
	CertificatesStatus string
	// ClonedFrom is the value of cluster.x-k8s.io/cloned-from-name on its infrastructure machine.
	ClonedFrom string
	// RemediationFor is the value of controlplane.cluster.x-k8s.io/remediation-for, or "".
	RemediationFor string

	// OtherHealthCheck is the name of a MachineHealthCheck that remediates the machine without scute, or "".
	OtherHealthCheck string
	// HealthChecksPass is True if the MachineHealthChecks that request the machine's remediation
	// from scute find all of their machines healthy. It is Absent if there are none.
	HealthChecksPass object.ConditionStatus

	// StepObjects contains the names of the escalation steps, of the policy and the log, whose
	// object for this machine exists.
	StepObjects []string
	// FailedSteps maps each failed step in StepObjects to the field of its object that shows the
	// failure.
	FailedSteps map[string]string

	// NodeFacts is nil if the Node was not read, because the policy does not need it.
	NodeFacts *NodeFacts

	// Annotations are the Machine's annotations that the policy's notices name.
	Annotations map[string]string

	Request *Request // its SurgeRemediation, or nil
}

// NodeFacts is one observation of a machine's Node in its workload cluster.
type NodeFacts struct {
	// Err is why the Node could not be read, or "".
	Err string
	// Conditions are the conditions of the Node; nil if it does not exist.
	Conditions map[string]Condition
	// Taints and Annotations are the values of the Node's taints and annotations by key. They
	// contain only keys that the policy's notices name.
	Taints, Annotations map[string]string
}

// Request contains the facts about a SurgeRemediation.
type Request struct {
	UID          types.UID
	Created      time.Time
	Deleting     bool
	Manual       bool // the Machine does not own it, so neither a MachineHealthCheck nor scute created it
	Hold         bool
	HoldUntil    time.Time // zero for a Hold without an end
	HoldReason   string
	Abort        bool
	OrdersCopied bool // the orders of earlier requests of the machine were copied to it
}

// Etcd contains the answers of etcd's members. Each member was asked separately.
type Etcd struct {
	// Err is why the members could not be listed, or "". If it is set, Members is empty.
	Err     string
	Members []Member
	// Alarms contains the raised alarms with their members, for example "NOSPACE of node-1".
	Alarms []string
	// AddsByQuorum reports whether etcd accepts a new member while a majority of the members,
	// including the new one, is connected (from 3.6.11). Otherwise etcd accepts it only while all
	// members are connected.
	AddsByQuorum bool
}

// Member is a member of etcd.
type Member struct {
	Node string // its name in etcd, which is the name of its node
	// Namesake is set for the member of an earlier machine that has the same name in etcd as a
	// node's present member. It is that name, or "" for all other members.
	Namesake string
	Learner  bool
	Leader   bool
	// Unstarted reports whether the member was added and has not published its name yet.
	Unstarted bool
	// Answers is True, False (the member was reached, and is unhealthy or refuses), or Unknown (it
	// could not be queried).
	Answers object.ConditionStatus
	// Reason is why the member does not answer, or why it was not queried by a port-forward to its
	// pod.
	Reason string
	// Via is how the member was queried: PortForward, its client port, or etcdctl in the pod of
	// another member.
	Via string
	// Size, InUse and Quota are those of the member's database, in bytes; each is 0 if it is
	// unknown.
	Size, InUse, Quota int64
}

// PortForward is the route by which a member is queried first: a port-forward to its pod.
const PortForward = "port-forward"

// Policy contains the facts about the RepairPolicy that selects the owner, with the defaults.
type Policy struct {
	Name string // "" if none selects it
	UID  types.UID
	// Unreadable is why the policy cannot be read, or "". If it is set, Name and UID are the only
	// other fields that are set.
	Unreadable        string
	DryRun            bool
	Paused            []string
	Checks            Checks
	Methods           map[v1alpha1.RepairMethod]bool // the allowed ones
	AllowsDeleteFirst bool                           // deleting a machine first if its replacement cannot be created first
	GuardsMachines    bool                           // machines that etcd needs against deletion by users
	Hold              time.Duration
	Escalation        []EscalationStep
	Limits            Limits
	Timeouts          Timeouts
	Removal           Removal
	// Hooks contains the names of deletion hooks that do not prevent a replacement. A name may end
	// with a *, which matches any suffix.
	Hooks    []string
	Attempts int
	// Survey is the interval at which etcd is queried even if no decision needs it; 0 for never.
	Survey          time.Duration
	Defragmentation Defragmentation
}

// EscalationStep is an escalation step before a replacement.
type EscalationStep struct {
	Name    string
	Timeout time.Duration
	// APIVersion and Kind of the object that the step creates.
	APIVersion, Kind string
}

// Checks contains the checks of a policy that determine whether a machine is unhealthy.
type Checks struct {
	NodeStartup time.Duration
	Machine     []Check
	Node        []Check // of them, Ready is read from the Machine, and the others from the Node itself
	Notices     []Notice
}

// Check is a check of one condition.
type Check struct {
	Type    string
	Status  object.ConditionStatus
	Timeout time.Duration
}

// Limits are the limits of a policy.
type Limits struct {
	AtOnce, PerWindow int
	// WorkersAtOnce is how many workers of one owner may be replaced at once; 0 means 1.
	WorkersAtOnce int
	Window        time.Duration
	MassFailure   MassFailure
	Cooldown      time.Duration
}

// Timeouts are the timeouts of a policy.
type Timeouts struct{ ScaleUp, Ready, Removal time.Duration }

// Removal contains the timeouts of the two waits in a machine's deletion, for its drain and its
// volumes; 0 for none.
type Removal struct{ Drain, Detach time.Duration }

// Ledger contains what counts toward the limits of a policy: the remediations of the other owners
// that it selects, and the machines of all owners that it selects.
type Ledger struct {
	Active    int         // counted remediations in progress
	Started   []time.Time // starts within the window
	Watched   int         // machines, including this owner's
	Unhealthy int         // unhealthy machines, including this owner's
	// MassFailureEnded is when the last mass failure of the policy ended, or zero.
	MassFailureEnded time.Time
}

func (f *Facts) all() iter.Seq[*Machine] {
	return func(yield func(*Machine) bool) {
		for i := range f.Machines {
			if !yield(&f.Machines[i]) {
				return
			}
		}
	}
}

func (f *Facts) where(fits func(*Machine) bool) (machines []*Machine) {
	for m := range f.all() {
		if fits(m) {
			machines = append(machines, m)
		}
	}
	return machines
}

func (f *Facts) names(fits func(*Machine) bool) (names []string) {
	for _, m := range f.where(fits) {
		names = append(names, m.Name)
	}
	return names
}

// find returns the first element that matches, or nil.
func find[T any](list []T, fits func(*T) bool) *T {
	for i := range list {
		if fits(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func pick[T any](list []*T, fits func(*T) bool) *T {
	if i := slices.IndexFunc(list, fits); i >= 0 {
		return list[i]
	}
	return nil
}

func (f *Facts) remainingMachines() int {
	return len(f.Machines) - f.deletingMachines()
}

// desiredReplicas returns the number of machines that users want. It reads the number from the
// Cluster's topology, if that sets the replicas, because the owner's spec is updated later.
func (f *Facts) desiredReplicas() int32 {
	if f.Cluster.Topology {
		return f.Cluster.TopologyReplicas
	}
	return f.Owner.Replicas
}

// isInitializing reports whether a control plane has not been initialized. If so, nothing can be
// lost with its only machine, and its owner remediates that machine without checking quorum
// (reconcileUnhealthyMachines). An initialized control plane may have lost its status in a restore
// or a move. isInitializing recognizes it by a Node, a second machine, or the expiry of
// certificates, because the owner creates no second machine before the initialization, and reads
// the expiry from a running node.
func (f *Facts) isInitializing() bool {
	ran := slices.ContainsFunc(f.Machines, func(m Machine) bool { return m.Node != "" || m.Certificates != "" || m.CertificatesStatus != "" })
	return f.isControlPlane() && f.Owner.Uninitialized && !f.Cluster.Initialized && f.remainingMachines() <= 1 && !ran
}

func (f *Facts) deletingMachines() int {
	return len(f.where(func(m *Machine) bool { return m.Deleting }))
}
