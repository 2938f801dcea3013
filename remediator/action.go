package remediator

import (
	"time"

	"scute.dev/kube/object"
)

// ActionType is a type of action. Actions are idempotent: the executor reads the object first, and
// writes only what is missing.
type ActionType string

// The types of actions. No action deletes a Machine, because only the owner may delete its
// machines.
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
	// Touch sets scute.dev/touched of the owner to Value, which makes the owner's controller
	// reconcile; "" removes it.
	Touch ActionType = "touch the owner"
	// Scale sets the replicas at Where to Replicas if they are Expect or Replicas. Otherwise it
	// fails with ErrPreconditionFailed.
	Scale ActionType = "scale"
	// HandOver sets the Machine's condition OwnerRemediated to False, reason WaitingForRemediation,
	// and HealthCheckSucceeded to False.
	HandOver ActionType = "request the owner's remediation"
	// Report sets the Machine's condition HealthCheckSucceeded to False. This informs the owner
	// that the machine is unhealthy, but does not request a remediation.
	Report ActionType = "report as unhealthy"
	// Withdraw removes the condition OwnerRemediated from the Machine, unless the Machine is being
	// deleted. HealthCheckSucceeded stays False.
	Withdraw ActionType = "withdraw the owner's remediation"
	// ClearConditions removes the conditions OwnerRemediated and ExternallyRemediated from the
	// Machine, and sets HealthCheckSucceeded to True.
	ClearConditions ActionType = "clear the remediation's conditions"
	// MoveLeadership moves etcd's leadership from Machine's member to the member on node Value.
	MoveLeadership ActionType = "move etcd's leadership"
	// SkipDrain makes the deletion of Machine continue without draining its Node. SkipDetach makes
	// it continue without waiting until its volumes are detached.
	SkipDrain  ActionType = "skip the drain"
	SkipDetach ActionType = "skip the wait for volumes"
	// CreateStepObject creates the object of the policy's escalation step named Value for Machine.
	// DeleteStepObject deletes that object.
	CreateStepObject ActionType = "create the step's object"
	DeleteStepObject ActionType = "delete the step's object"
	// CreateRequest creates Machine's SurgeRemediation. Value is the JSON of its spec with the hold
	// and the abort of an earlier request, or "". DeleteRequest deletes the SurgeRemediation and
	// removes its finalizer. It fails if an order in Value was removed from the spec or, with Value
	// "", if the spec has an order.
	CreateRequest ActionType = "create the SurgeRemediation"
	DeleteRequest ActionType = "delete the SurgeRemediation"
	// Defragment defragments the etcd member on node Value by the deadline Until, if its database
	// still has Size bytes. If the member leads, the leadership moves to the member on node
	// NewLeader first.
	Defragment ActionType = "defragment etcd"
	// Disarm disarms etcd's NOSPACE alarm.
	Disarm ActionType = "disarm the alarm NOSPACE"
)

// DeleteValue is the value that scute writes into cluster.x-k8s.io/delete-machine. It identifies
// scute's own annotations.
const DeleteValue = object.OwnDeleteMachineValue

// Action represents one write that must be performed.
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
	// forRemediation means that the action belongs to the active remediation or to the cleanup of
	// ended ones, and not to the housekeeping of a machine.
	forRemediation bool
}

// DependsOn reports whether this write must be skipped if the other write failed. It must if both
// belong to remediations, or if neither does and both concern the same machine.
func (a Action) DependsOn(other Action) bool {
	return a.forRemediation && other.forRemediation || !a.forRemediation && !other.forRemediation && a.Machine.UID == other.Machine.UID
}
