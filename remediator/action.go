package remediator

import (
	"time"

	"scute.dev/kube/object"
)

// ActionType is a type of action. Each action is idempotent: the executor reads first, and writes only what is missing.
type ActionType string

// The types of actions. None of them deletes a Machine, because only its owner may.
const (
	// SetUnhealthy sets the annotation scute.dev/unhealthy of Machine to Value; "" removes it.
	SetUnhealthy ActionType = "mark"
	// SetNeeded sets the annotation scute.dev/needed of Machine to Value; "" removes it.
	SetNeeded ActionType = "guard against deletion"
	// SetDelete sets cluster.x-k8s.io/delete-machine of Machine to DeleteValue. Value "" removes
	// the annotation if scute set it.
	SetDelete ActionType = "set the delete annotation"
	// SetCertificates sets machine.cluster.x-k8s.io/certificates-expiry of Machine to Value; "" removes it.
	SetCertificates ActionType = "set the certificates' expiry"
	// SetClonedFrom sets cluster.x-k8s.io/cloned-from-name of Machine's infrastructure machine to Value.
	SetClonedFrom ActionType = "set the template's name"
	// SetRelaxed sets controlplane.cluster.x-k8s.io/remediation-in-progress of the owner to Value;
	// "" removes the annotation if it names Machine.
	SetRelaxed ActionType = "relax the preflight checks"
	// Touch sets scute.dev/touched of the owner to Value, so that the owner reconciles what it does
	// not watch; "" removes it.
	Touch ActionType = "touch the owner"
	// Scale sets the replicas at Where to Replicas if they are Expect or Replicas. Otherwise it
	// fails with ErrPreconditionFailed.
	Scale ActionType = "scale"
	// HandOver sets the Machine's condition OwnerRemediated to False, reason WaitingForRemediation,
	// and HealthCheckSucceeded to False.
	HandOver ActionType = "request the owner's remediation"
	// Report sets the Machine's condition HealthCheckSucceeded to False. Its owner then knows that
	// the machine is unhealthy, but is not asked to remediate it.
	Report ActionType = "report as unhealthy"
	// Withdraw removes OwnerRemediated from the Machine, unless its owner is deleting it. The
	// machine is still unhealthy.
	Withdraw ActionType = "withdraw the owner's remediation"
	// ClearConditions removes OwnerRemediated and ExternallyRemediated from the Machine, and sets
	// HealthCheckSucceeded to True.
	ClearConditions ActionType = "clear the remediation's conditions"
	// MoveLeadership moves etcd's leadership from Machine's member to the member of node Value.
	MoveLeadership ActionType = "move etcd's leadership"
	// SkipDrain makes the deletion of Machine continue without draining its Node. SkipDetach makes
	// it continue without waiting until its volumes are detached.
	SkipDrain  ActionType = "skip the drain"
	SkipDetach ActionType = "skip the wait for volumes"
	// CreateStepObject creates the object of escalation step Value of the policy for Machine;
	// DeleteStepObject deletes it.
	CreateStepObject ActionType = "create the step's object"
	DeleteStepObject ActionType = "delete the step's object"
	// CreateRequest creates Machine's SurgeRemediation with Value, the JSON of a spec with the hold
	// and the abort of an earlier request, or "". DeleteRequest deletes the SurgeRemediation if its
	// spec still has the orders in Value, and removes its finalizer.
	CreateRequest ActionType = "create the SurgeRemediation"
	DeleteRequest ActionType = "delete the SurgeRemediation"
	// Defragment defragments the etcd member on node Value until Until, if its database still has
	// Size bytes. If the member leads, the leadership moves to the member on node To first.
	Defragment ActionType = "defragment etcd"
	// Disarm disarms etcd's NOSPACE alarm.
	Disarm ActionType = "disarm the alarm NOSPACE"
)

// DeleteValue is the value that scute writes into cluster.x-k8s.io/delete-machine. It identifies
// scute's own annotations.
const DeleteValue = object.OwnDeleteMachineValue

// Action is one write that is due.
type Action struct {
	Type    ActionType
	Machine Subject
	Value   string
	// For Scale.
	Where            Where
	Entry            string // in the topology
	Replicas, Expect int32
	// For Defragment.
	NewLeader string
	Size      int64
	// Until is the deadline of a Defragment, and identifies the attempt. Timeout is its timeout.
	Until   time.Time
	Timeout time.Duration
	// Object is the object that DeleteStepObject deletes. If it is nil, the policy's template names the object.
	Object *StepObject
	// forRemediation means that the action belongs to the remediation that has been started, and
	// not to the housekeeping of a machine.
	forRemediation bool
}

// DependsOn reports whether a write must not be made after another write failed. This is the case
// if both writes belong to the remediation in progress, or if both change the same machine.
func (a Action) DependsOn(other Action) bool {
	return a.forRemediation && other.forRemediation || !a.forRemediation && !other.forRemediation && a.Machine.UID == other.Machine.UID
}
