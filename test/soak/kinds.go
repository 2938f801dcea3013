package soak

import "time"

// Kind is a kind of fault.
type Kind string

// The kinds. A fault of most of them has a duration, after which it is reverted.
const (
	NodeNotReady       Kind = "node-not-ready"      // the kubelet of a control plane machine reports a problem
	NodeSilent         Kind = "node-silent"         // its kubelet is stopped
	WorkerNotReady     Kind = "worker-not-ready"    // the kubelet of a worker reports a problem
	PowerOff           Kind = "power-off"           // the node and its etcd member are silent
	EtcdSilent         Kind = "etcd-silent"         // only the etcd member is silent
	EtcdMemberRemoved  Kind = "etcd-member-removed" // etcd has removed the member, and the kubelet reports a problem
	EtcdPodNotReady    Kind = "etcd-pod-not-ready"  // the member still answers
	LeaderMoved        Kind = "leader-moved"        // another member of etcd becomes the leader
	MajorityOff        Kind = "majority-off"        // two of three machines without power: the quorum is lost
	MachineDeleted     Kind = "machine-deleted"     // a control plane machine, by a user
	WorkerDeleted      Kind = "worker-deleted"      // by a user
	Scaled             Kind = "scaled"              // the control plane to five, and back
	RolledOut          Kind = "rolled-out"          // the control plane is rolled out, or upgraded
	Paused             Kind = "paused"              // the Cluster
	Held               Kind = "held"                // a remediation
	Aborted            Kind = "aborted"             // a remediation
	Moved              Kind = "moved"               // the cluster, to the other side
	MoveAborted        Kind = "move-aborted"        // a move, after a while
	RunStarted         Kind = "run-started"         // a WorkflowRun
	ScutedKilled       Kind = "scuted-killed"       // with SIGKILL
	ScutedStopped      Kind = "scuted-stopped"      // with SIGSTOP, and continued
	APIServerKilled    Kind = "apiserver-killed"    // with SIGKILL
	EtcdKilled         Kind = "etcd-killed"         // the management cluster's, with SIGKILL
	ControllersStopped Kind = "controllers-stopped" // Cluster API's controllers, with their webhooks
)

// moves reports whether a fault moves a cluster.
func (k Kind) moves() bool { return k == Moved || k == MoveAborted }

// place is the target of a fault.
type place int

const (
	anyCluster  place = iota
	homeCluster       // a cluster that is never moved
	roamer            // the cluster that is moved
	anySide
)

// nature is what the schedule needs to know about a kind.
type nature struct {
	Kind
	weight      int
	at          place
	least, most time.Duration // the bounds of its duration
	// uses is a resource that no two faults may use at the same time. It is blocked for the time after, when the fault
	// is over.
	uses  string
	after time.Duration
}

// The resources that faults use, each for one cluster or one side.
const (
	member  = "member"  // of etcd: the minority that a control plane can lose
	spec    = "spec"    // of the cluster: a user changes it
	server  = "server"  // of a side
	request = "request" // of a remediation
)

// recovery is how long a control plane may need until all members of etcd are back, on an idle machine. The injector
// checks this before it silences another member.
const recovery = 20 * time.Second

// natures returns the natures of all kinds.
func natures() []nature {
	const s = time.Second
	return []nature{
		{NodeNotReady, 10, anyCluster, 3 * s, 60 * s, "", 0},
		{NodeSilent, 8, anyCluster, 3 * s, 60 * s, "", 0},
		{WorkerNotReady, 6, anyCluster, 3 * s, 60 * s, "", 0},
		{PowerOff, 8, anyCluster, 3 * s, 60 * s, member, recovery},
		{EtcdSilent, 5, anyCluster, 2 * s, 30 * s, member, recovery},
		{EtcdMemberRemoved, 3, anyCluster, 10 * s, 40 * s, member, recovery},
		{EtcdPodNotReady, 3, anyCluster, 3 * s, 20 * s, "", 0},
		{LeaderMoved, 3, anyCluster, 0, 0, "", 0},
		{MajorityOff, 2, homeCluster, 10 * s, 30 * s, member, 3 * recovery},
		{MachineDeleted, 4, anyCluster, 0, 0, member, 2 * recovery},
		{WorkerDeleted, 4, anyCluster, 0, 0, "", 0},
		{Scaled, 3, anyCluster, 10 * s, 40 * s, spec, recovery},
		{RolledOut, 3, anyCluster, 0, 0, spec, 3 * recovery},
		{Paused, 4, homeCluster, 3 * s, 20 * s, spec, 0},
		{Held, 4, anyCluster, 10 * s, 30 * s, request, 0},
		{Aborted, 5, anyCluster, 10 * s, 30 * s, request, 0},
		{Moved, 5, roamer, 0, 0, spec, recovery},
		{MoveAborted, 5, roamer, 0, 10 * s, spec, recovery},
		{RunStarted, 8, anySide, 0, 0, "", 0},
		{ScutedKilled, 8, anySide, 0, 6 * s, server, 5 * s},
		{ScutedStopped, 3, anySide, 1 * s, 20 * s, server, 5 * s},
		{APIServerKilled, 3, anySide, 0, 15 * s, server, 10 * s},
		{EtcdKilled, 2, anySide, 0, 10 * s, server, 10 * s},
		{ControllersStopped, 3, anySide, 0, 15 * s, server, 10 * s},
	}
}

// Kinds returns all kinds, in order.
func Kinds() []Kind {
	var all []Kind
	for _, n := range natures() {
		all = append(all, n.Kind)
	}
	return all
}
