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

// MarkState is how bad it is.
type MarkState string

// The states of a mark.
const (
	Failing   MarkState = "Failing"                   // a check fails, its time is not over
	Unhealthy MarkState = "Unhealthy"                 // its time is over
	Scheduled MarkState = v1alpha1.UnhealthyScheduled // its replacement has started
)

// Source of a mark.
type Source string

// The sources.
const (
	FromHealthCheck Source = "MachineHealthCheck"
	FromOperator    Source = "Operator"
	FromPolicy      Source = "Policy"
	FromNotice      Source = "Notice" // the machine is healthy, and about to stop
)

// Verdict is what was decided.
type Verdict string

// The verdicts.
const (
	RolloutSurge     Verdict = "RolloutSurge"
	Surge            Verdict = "Surge"
	OwnerRemediation Verdict = "OwnerRemediation"
	Wait             Verdict = "Wait"
	Freeze           Verdict = "Freeze"
	Escalate         Verdict = "Escalate"
	CannotRemediate  Verdict = "CannotRemediate"
)

// Decision about one machine, and why.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Relaxed: the surge needs the owner's preflight relaxed.
	Relaxed bool `json:"relaxed,omitempty"`
	// Rule is a short name of the rule that decided, for people who compare; "" never.
	Rule string `json:"rule"`
	// Reason in one sentence.
	Reason string `json:"reason"`
	// Next is what a human can do, if anything.
	Next string `json:"next,omitempty"`
	// Domain is the failure domain that a Wait waits for.
	Domain string `json:"domain,omitempty"`
}

// Evidence is what a decision was made on, small enough to be stored forever.
type Evidence struct {
	Replicas   int32    `json:"replicas"`
	Machines   int      `json:"machines"`
	Ready      int      `json:"ready"`
	Broken     []string `json:"broken,omitempty"` // machines whose components are not all well
	Deleting   []string `json:"deleting,omitempty"`
	External   bool     `json:"external,omitempty"` // etcd
	Voters     int      `json:"voters,omitempty"`
	Learners   int      `json:"learners,omitempty"`
	Silent     []string `json:"silent,omitempty"` // members that do not answer, or could not be asked
	EtcdError  string   `json:"etcdError,omitempty"`
	Ways       []string `json:"ways,omitempty"` // members that were asked by another way than a port-forward, with the way
	Leader     string   `json:"leader,omitempty"`
	Joining    []string `json:"joining,omitempty"` // the learners
	Version    string   `json:"version,omitempty"`
	MaxSurge   int32    `json:"maxSurge"`
	PolicyName string   `json:"policy"`
	DryRun     bool     `json:"dryRun,omitempty"`
}

// StepOutcome is how an escalation step ended.
type StepOutcome string

// The outcomes of a step.
const (
	StepFailed    StepOutcome = "Failed"
	StepTimedOut  StepOutcome = "TimedOut"
	StepCancelled StepOutcome = "Cancelled" // by an operator, or the policy has no such step any more
	StepRecovered StepOutcome = "Recovered" // in logs of version 1 only: now the mark is cleared
)

// DefragmentationOutcome is how a defragmentation ended.
type DefragmentationOutcome string

// The outcomes of a defragmentation.
const (
	DefragmentationDone     DefragmentationOutcome = "Done"
	DefragmentationFailed   DefragmentationOutcome = "Failed"
	DefragmentationTimedOut DefragmentationOutcome = "TimedOut" // the member does not answer
)

// RolloutTrigger is how a machine is made outdated.
type RolloutTrigger string

// The triggers.
const (
	TriggerCertificates RolloutTrigger = "certificates-expiry"
	TriggerClonedFrom   RolloutTrigger = "cloned-from-name"
)

// Where replicas are asked for.
type Where string

// The places.
const (
	AtOwner    Where = "owner"
	AtTopology Where = "topology"
)

// Cause of a cancellation, or of a mark that is taken off.
type Cause string

// The causes.
const (
	Recovered  Cause = "Recovered"  // the victim is healthy again
	TimedOut   Cause = "TimedOut"   // no replacement, or none that became ready, in time
	Aborted    Cause = "Aborted"    // an operator asked for it
	OwnerGone  Cause = "OwnerGone"  // the owner or the cluster is being deleted
	Deselected Cause = "Deselected" // no policy selects it any more
	Reverted   Cause = "Reverted"   // somebody else set the replicas that were asked for
	Superseded Cause = "Superseded" // a rollout or an upgrade came in between, and takes long
	Held       Cause = "Held"       // an operator holds the machine, and nothing is asked for yet
	Worsened   Cause = "Worsened"   // the machine is worse than it was: its owner does not do what was asked, and may do something else
	Unsafe     Cause = "Unsafe"     // the request was not safe, or no longer safe

	MachineGone Cause = "MachineGone" // somebody else took the machine away
)
