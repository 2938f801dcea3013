package remediator

import (
	"time"

	"scute.dev/kube/object"
)

// ActionType is a type of action. Each action is idempotent: the executor reads first, and writes only what is missing.
type ActionType string

// The types of actions. None of them deletes a Machine: only its owner does.
const (
	// SetMark sets scute.dev/unhealthy on Machine to Value; "" takes it off.
	SetMark ActionType = "mark"
	// SetNeeded sets scute.dev/needed on Machine to Value; "" takes it off.
	SetNeeded ActionType = "guard against deletion"
	// SetDelete sets cluster.x-k8s.io/delete-machine on Machine to DeleteValue; Value "" takes ours off, and only ours.
	SetDelete ActionType = "mark for the owner's next scale-down"
	// SetCertificates sets machine.cluster.x-k8s.io/certificates-expiry on Machine to Value; "" takes it off.
	SetCertificates ActionType = "set the certificates' expiry"
	// SetClonedFrom sets cluster.x-k8s.io/cloned-from-name on Machine's infrastructure machine to Value.
	SetClonedFrom ActionType = "set the template's name"
	// SetRelaxed sets controlplane.cluster.x-k8s.io/remediation-in-progress on the owner to Value; "" takes off one that
	// names Machine, and only that.
	SetRelaxed ActionType = "relax the preflight"
	// Touch sets scute.dev/touched on the owner to Value, so that it looks at what it does not watch; "" takes it off.
	Touch ActionType = "touch the owner"
	// Scale sets the replicas at Where to Replicas, if they are Expect (or Replicas already); else ErrPreconditionFailed.
	Scale ActionType = "scale"
	// HandOver sets the Machine's condition OwnerRemediated to False, reason WaitingForRemediation, and
	// HealthCheckSucceeded to False if it is not set.
	HandOver ActionType = "hand over to the owner"
	// Report sets the Machine's condition HealthCheckSucceeded to False if nothing else has. Its owner knows then that the machine is
	// unhealthy, and is not asked to remediate it.
	Report ActionType = "report as unhealthy"
	// Withdraw takes OwnerRemediated off the Machine, unless its owner is deleting it. The machine is still unhealthy.
	Withdraw ActionType = "withdraw the hand-over"
	// ClearConditions takes OwnerRemediated and ExternallyRemediated off the Machine, and sets HealthCheckSucceeded to True.
	ClearConditions ActionType = "clear the remediation's conditions"
	// MoveLeadership moves etcd's leadership away from Machine, to the member of node Value.
	MoveLeadership ActionType = "move etcd's leadership"
	// SkipDrain lets the deletion of Machine continue without the drain of its Node, SkipDetach without waiting for its
	// volumes to be detached.
	SkipDrain  ActionType = "skip the drain"
	SkipDetach ActionType = "skip the wait for volumes"
	// CreateStepObject creates the object of escalation step Value of the policy for Machine; DeleteStepObject deletes it.
	CreateStepObject ActionType = "create the step's object"
	DeleteStepObject ActionType = "delete the step's object"
	// CreateRequest creates Machine's SurgeRemediation, and has it say what Value does, the JSON of a spec or "": the hold and the
	// abort that an earlier one said. DeleteRequest deletes it as long as it says what Value does, and removes its finalizer.
	CreateRequest ActionType = "make the request"
	DeleteRequest ActionType = "drop the request"
	// Defragment has the member of etcd on node Value defragmented until Until, if its database still has Size bytes. If it leads, the
	// member on node To leads before.
	Defragment ActionType = "defragment etcd"
	// Disarm disarms the alarm NOSPACE of etcd.
	Disarm ActionType = "disarm the alarm NOSPACE"
)

// DeleteValue is what scute writes into cluster.x-k8s.io/delete-machine, to know its own marks from those of others.
const DeleteValue = object.OwnDeleteMark

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
	To   string
	Size int64
	// Until names an attempt of Defragment, which takes no longer than For.
	Until time.Time
	For   time.Duration
	// Object that DeleteStepObject deletes; nil where the policy's template says which.
	Object *StepObject
	// ours: it belongs to the remediation that has been started, not to what people see of a machine.
	ours bool
}

// Follows says that a write is made only after another one: both belong to the remediation that has been started, or are about one
// machine. What concerns another machine does not wait for it.
func (a Action) Follows(other Action) bool {
	return a.ours && other.ours || !a.ours && !other.ours && a.Machine.UID == other.Machine.UID
}
