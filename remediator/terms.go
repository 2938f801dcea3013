package remediator

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// Subject names a machine in an event.
type Subject struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// markState is the state of a machine's mark (event MachineMarked).
type markState string

// States of the mark of a machine.
const (
	Failing   markState = "Failing"                   // a check fails, but its timeout has not expired
	Unhealthy markState = "Unhealthy"                 // the timeout has expired
	Scheduled markState = v1alpha1.UnhealthyScheduled // its replacement has started
)

type source string

// Sources of the marks of machines.
const (
	FromHealthCheck source = "MachineHealthCheck"
	FromOperator    source = "Operator"
	FromPolicy      source = "Policy"
	FromNotice      source = "Notice" // the machine is healthy, and about to stop
)

// Verdict is the result of a decision.
type Verdict string

// Verdicts of decisions.
const (
	RolloutSurge     Verdict = "RolloutSurge"
	Surge            Verdict = "Surge"
	OwnerRemediation Verdict = "OwnerRemediation"
	Wait             Verdict = "Wait"
	Freeze           Verdict = "Freeze"
	Escalate         Verdict = "Escalate"
	CannotRemediate  Verdict = "CannotRemediate"
)

// Decision contains a verdict about one machine, with its reason.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Relaxed means that the surge needs relaxed preflight checks of the owner.
	Relaxed bool `json:"relaxed,omitempty"`
	// Rule is the short name of the rule that decided. It is never "".
	Rule string `json:"rule"`
	// Reason is one sentence.
	Reason string `json:"reason"`
	// Next is what a human can do, if anything.
	Next string `json:"next,omitempty"`
	// Domain is the failure domain because of which the verdict is Wait, or "".
	Domain string `json:"domain,omitempty"`
}

// Evidence contains the facts on which a decision was based, small enough to be stored forever.
type Evidence struct {
	Replicas   int32    `json:"replicas"`
	Machines   int      `json:"machines"`
	Ready      int      `json:"ready"`
	Broken     []string `json:"broken,omitempty"` // machines with broken components
	Deleting   []string `json:"deleting,omitempty"`
	External   bool     `json:"external,omitempty"` // etcd is external
	Voters     int      `json:"voters,omitempty"`
	Learners   int      `json:"learners,omitempty"`
	Silent     []string `json:"silent,omitempty"` // nodes of voters that do not answer, or could not be asked
	EtcdError  string   `json:"etcdError,omitempty"`
	Fallbacks  []string `json:"fallbacks,omitempty"` // members that were not asked by port-forward, and how they were
	Leader     string   `json:"leader,omitempty"`
	Joining    []string `json:"joining,omitempty"` // learners
	Version    string   `json:"version,omitempty"`
	MaxSurge   int32    `json:"maxSurge"`
	PolicyName string   `json:"policy"`
	DryRun     bool     `json:"dryRun,omitempty"`
}

// stepOutcome represents how an escalation step ended.
type stepOutcome string

const (
	stepFailed    stepOutcome = "Failed"
	stepTimedOut  stepOutcome = "TimedOut"
	stepCancelled stepOutcome = "Cancelled" // by an operator, or because the policy no longer has the step
	stepRecovered stepOutcome = "Recovered" // only in events of version 1; later versions clear the mark
)

// DefragmentationOutcome represents how a defragmentation ended.
type DefragmentationOutcome string

// Outcomes of a defragmentation.
const (
	DefragmentationDone     DefragmentationOutcome = "Done"
	DefragmentationFailed   DefragmentationOutcome = "Failed"
	DefragmentationTimedOut DefragmentationOutcome = "TimedOut" // the member does not answer
)

// RolloutTrigger identifies the annotation with which scute makes a machine outdated.
type RolloutTrigger string

// Rollout triggers.
const (
	TriggerCertificates RolloutTrigger = "certificates-expiry"
	TriggerClonedFrom   RolloutTrigger = "cloned-from-name"
)

// Where identifies the object in which scute requests replicas: the owner, or the Cluster with its
// topology.
type Where string

// Objects with replicas.
const (
	AtOwner    Where = "owner"
	AtTopology Where = "topology"
)

// cause represents the reason of a cancellation, or of the removal of a mark.
type cause string

// Causes of cancellations and removed marks.
const (
	Recovered  cause = "Recovered"  // the victim is healthy again
	TimedOut   cause = "TimedOut"   // the replacement, or the deletion of the victim, took too long
	Aborted    cause = "Aborted"    // an operator asked for it
	OwnerGone  cause = "OwnerGone"  // the owner is gone, or it or the Cluster is being deleted
	Deselected cause = "Deselected" // no policy selects it any more
	Reverted   cause = "Reverted"   // another client changed the requested replicas
	Superseded cause = "Superseded" // a rollout or an upgrade started meanwhile and takes long, or the remediation was merged
	Held       cause = "Held"       // an operator holds the machine, and nothing was requested yet
	Worsened   cause = "Worsened"   // the machine got worse: its owner does not act on the request, but may on another one
	Unsafe     cause = "Unsafe"     // the request was not safe, or is no longer

	MachineGone cause = "MachineGone" // another client deleted the machine
)
