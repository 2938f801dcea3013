package remediator

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/view"
)

// Rules that freeze a remediation in progress.
const (
	freezePaused  = "paused"
	freezeMove    = ruleMove
	freezeForeign = "foreign-replicas"
	freezeQuorum  = "quorum"
	freezeRisk    = "quorum-risk"
	freezeHeld    = "held"
	freezePolicy  = ruleUnreadable
	freezeRequest = rulePauseRequests
	freezeHold    = ruleHold
	freezeRefused = "owner-refused"
	freezeDenied  = "write-denied"
)

// writeExtent defines which writes are permitted while a remediation is frozen.
type writeExtent int

// Extents from nothing to everything. Each one includes the previous ones.
const (
	writesNothing writeExtent = iota
	writesMarks               // marks and SurgeRemediations, which users see
	writesUndo                // undoing requests that are not needed: replicas for which a new machine exists, a request to remediate
	writesAll
)

func (w writeExtent) String() string {
	return [...]string{
		"nothing, not even an annotation", "annotations and SurgeRemediations",
		"what undoes unneeded requests; annotations and SurgeRemediations", "everything as before",
	}[w]
}

// suspension is a reason to freeze a remediation. When the reason has passed, the remediation is Thawed. The time in between does not count for
// timeouts.
//
// The table of suspensions in docs/design/remediation-states.md is generated from suspensions.
type suspension struct {
	rule   string
	when   string
	writes writeExtent
	// applies returns the reason and what a human can do. ok is false if the suspension does not apply.
	applies func(r remediation) (reason, next string, ok bool)
	// due returns when the suspension starts to apply without another change. It is nil if time alone never causes that.
	due func(r remediation) time.Time
}

// suspensions are in the order of their priority: the first suspension that applies is recorded.
var suspensions = []suspension{
	{freezeMove, "the log has a move of the cluster in progress", writesNothing, func(r remediation) (string, string, bool) {
		return "the cluster is being moved: " + r.facts.Move, "it continues when the move has ended", r.facts.Move != ""
	}, nil},
	{freezePaused, "the Cluster is paused: it may be on its way to another management cluster", writesNothing, func(r remediation) (string, string, bool) {
		return r.pausedOwner(), untilUnpaused, r.facts.Cluster.Paused
	}, nil},
	{freezePaused, "the machine is paused", writesUndo, func(r remediation) (string, string, bool) {
		if r.victim == nil || !r.victim.Paused {
			return "", "", false
		}
		return "machine " + r.victim.Name + " is paused", "it continues when the pause of the machine is removed", true
	}, nil},
	{freezePaused, "the owner is paused", writesMarks, func(r remediation) (string, string, bool) {
		return r.pausedOwner(), untilUnpaused, r.facts.Owner.Paused
	}, nil},
	{freezePolicy, "the RepairPolicy cannot be read, the machine is not gone, and nothing is being cancelled", writesUndo, func(r remediation) (string, string, bool) {
		p := r.facts.Policy
		if p.Unreadable == "" || r.in(Cancelling, Sparing, Settling) {
			return "", "", false
		}
		return p.unreadableReason(), p.correctAdvice() + "; or abort the remediation", true
	}, nil},
	{freezePolicy, "the RepairPolicy cannot be read, the machine is gone, and its replacement is not ready", writesAll, func(r remediation) (string, string, bool) {
		_, done := r.complete()
		return "the machine is gone, and its replacement is not ready; " + r.facts.Policy.unreadableReason(), r.facts.Policy.correctAdvice(), r.in(Settling) && r.facts.Policy.Unreadable != "" && !done
	}, nil},
	{freezeForeign, "replicas are neither the original nor the requested value, or were restored before a new machine existed", writesMarks, func(r remediation) (string, string, bool) {
		next := "make the client that sets the replicas (a GitOps tool, an autoscaler) ignore them"
		if r.facts.isControlPlane() {
			next += ", or allow RolloutSurge"
		}
		return fmt.Sprintf("another client set the replicas to %d, and scute requested %d instead of %d", r.replicas+r.facts.excludedReplicas, r.Request.To+r.facts.excludedReplicas, r.Request.From+r.facts.excludedReplicas),
			next + "; scute undoes its request soon", r.foreignReplicas()
	}, nil},
	{freezeHeld, "the machine is being deleted, blocked by a deletion hook that the policy does not allow", writesAll, func(r remediation) (string, string, bool) {
		if r.victim == nil || !r.victim.Deleting || len(r.facts.Policy.blockingHooks(r.victim)) == 0 {
			return "", "", false
		}
		return "the machine is being deleted" + formatHooks(r.facts.Policy.blockingHooks(r.victim)), "find out who set the hook; nothing else happens for " + r.facts.Owner.Name + " meanwhile", true
	}, nil},
	{freezeHeld, "the machine is being deleted for longer than `timeouts.removal`", writesAll, func(r remediation) (string, string, bool) {
		if !r.reached(r.removalDeadline(r.victim)) {
			return "", "", false
		}
		return fmt.Sprintf("%s has been deleting it for more than %s%s", r.facts.Owner.Name, view.Duration(r.facts.Policy.Timeouts.Removal), formatHooks(r.victim.Hooks)), "find out what blocks the deletion: the drain, volumes or the infrastructure", true
	}, func(r remediation) time.Time { return r.removalDeadline(r.victim) }},
	{freezeHeld, "the machine is gone, or has lost its delete annotation, and the deletion of another machine (of a control plane, or a new one) is blocked by a hook, or lasts longer than `timeouts.removal`", writesAll, func(r remediation) (string, string, bool) {
		m, gone := r.hangingMachine(), ""
		if m == nil {
			return "", "", false
		}
		if r.in(Settling) {
			gone = "the machine is gone; "
		}
		return gone + "machine " + m.Name + " is being deleted" + formatHooks(m.Hooks), "find out what blocks the deletion of machine " + m.Name + " (hooks, the drain, volumes or the infrastructure); nothing else happens for " + r.facts.Owner.Name + " meanwhile", true
	}, remediation.hangDeadline},
	{freezeQuorum, "the API server or etcd of a control plane could not be asked for ten seconds, or quorum is lost; the machine is not gone", writesUndo, func(r remediation) (string, string, bool) {
		switch {
		case r.facts.withinGracePeriod() && r.Frozen == freezeQuorum:
			return r.FrozenReason, r.FrozenNext, true
		case checkBlind(r.facts) == nil || r.in(Settling) || r.facts.withinGracePeriod():
			return "", "", false
		}
		d := checkBlind(r.facts)
		return d.Reason, d.Next, true
	}, nil},
	{freezeRisk, "nothing was requested yet, or the owner has not acted on the request to remediate, and it is no longer safe: the members of etcd do not allow it, the owner would first remediate a machine that another client requests and that etcd cannot spare, another machine is being deleted, or no other machine serves the API", writesUndo, func(r remediation) (string, string, bool) {
		risk := r.requestRisk()
		return risk.why, risk.next, !risk.none()
	}, nil},
	{freezeRequest, "nothing was requested yet, and the RepairPolicy or RepairLimits have pause requests", writesUndo, func(r remediation) (string, string, bool) {
		p, fleet := r.facts.Policy, r.facts.Fleet.Limits.Paused
		if len(fleet) > 0 {
			return "RepairLimits default has pause requests: " + strings.Join(fleet, "; "), "remove the pause requests to continue", r.notRequested()
		}
		return "RepairPolicy " + p.Name + " has pause requests: " + strings.Join(p.Paused, "; "), "remove the pause requests to continue", r.notRequested() && len(p.Paused) > 0
	}, nil},
	{freezeHold, "nothing was requested yet, or the owner has not acted on the request to remediate, and an operator holds the machine", writesUndo, func(r remediation) (string, string, bool) {
		if !r.notRequested() && !r.awaitsOwner() || !r.unhealthy.held(r.now) {
			return "", "", false
		}
		return r.unhealthy.describeHold(), "release the machine when you no longer need it", true
	}, nil},
	{freezeRefused, "replicas are raised, no new machine exists, the policy does not accept that the machine is deleted first, and the owner reports what keeps it from creating one: its preflight checks, a quota, a webhook; or it defers the requested remediation of a worker", writesAll, func(r remediation) (string, string, bool) {
		if r.deferred() {
			return r.facts.Owner.Name + " defers the remediation: the condition OwnerRemediated has the reason", nextFix, true
		}
		return r.facts.Owner.Name + " creates no machine: " + r.facts.Owner.Refused, nextFix,
			r.facts.Owner.Refused != "" && !r.facts.Policy.AllowsDeleteFirst && r.in(Requesting) && r.scales() && r.method.requesting(r) && len(r.newMachines) == 0
	}, nil},
	{freezeDenied, "nothing was requested yet, because the API server has rejected the write for a minute", writesAll, func(r remediation) (string, string, bool) {
		return "the request cannot be written: " + r.state.Failure, "fix what rejects it (RBAC, an admission policy, a quota), and scute continues by itself; or abort the remediation", r.reached(r.deniedFrom())
	}, remediation.deniedFrom},
}

// deniedFrom returns when writes have failed for so long that they will probably not succeed soon. It returns zero while they succeed.
func (r remediation) deniedFrom() time.Time {
	return dueIf(r.state.Failure != "" && r.notRequested(), r.state.FailingSince.Add(time.Minute))
}

// hangingMachine returns another machine that must be gone before the remediation ends, and whose deletion does not end. It returns nil if there is none.
func (r remediation) hangingMachine() *Machine {
	return pick(r.deleting, func(m *Machine) bool {
		return r.in(Settling, Sparing) && (len(m.Hooks) > 0 || r.reached(r.removalDeadline(m)))
	})
}

// hangDeadline returns when the deletion of another machine has lasted too long, or zero if none is being deleted.
func (r remediation) hangDeadline() time.Time {
	var first time.Time
	for _, m := range r.deleting {
		if due := r.removalDeadline(m); r.in(Settling, Sparing) && !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// notRequested reports whether nothing of the request is visible in the cluster yet.
func (r remediation) notRequested() bool {
	return r.in(Requesting) && r.victim != nil && !r.victim.Deleting && len(r.newMachines) == 0 && r.Scale == ScaleUnobserved && r.method.undone(r)
}

// awaitsOwner reports whether the owner is asked to remediate the machine and has not started to delete it.
func (r remediation) awaitsOwner() bool {
	return r.Request.Method == OwnerRemediation && r.in(Requesting) && r.victim != nil && !r.victim.Deleting
}

// deferred reports whether the MachineSet of a worker postpones the remediation because of its preflight checks or other remediations in progress.
// For a KubeadmControlPlane, scute checks the same before it asks.
func (r remediation) deferred() bool {
	if !r.awaitsOwner() || r.facts.isControlPlane() {
		return false
	}
	c := r.victim.Conditions[clusterv1.MachineOwnerRemediatedCondition]
	return c.Status == object.False && c.Reason == clusterv1.MachineSetMachineRemediationDeferredReason
}

// requestRisk returns the risk of a request to remediate until the owner starts, and of a surge until it is requested. After that, the decision is up to
// the owner.
func (r remediation) requestRisk() risk {
	f := r.facts
	if !f.isControlPlane() || f.Owner.ExternalEtcd || f.Etcd == nil || r.victim == nil || r.victim.Deleting || f.withinGracePeriod() {
		return risk{}
	}
	switch {
	case r.awaitsOwner():
		return f.riskOfRemoval(r.victim)
	case r.Request.Method != OwnerRemediation && r.notRequested() && !Count(f.Etcd).MayAdd():
		return f.riskOfMinority("with a new member that fails")
	default:
		return risk{}
	}
}

const (
	untilUnpaused = "it continues when the pause is removed"
	nextFix       = "fix the cause, and scute continues by itself; or abort the remediation"
)

func (r remediation) pausedOwner() string {
	return "the cluster or its " + r.facts.Owner.Kind + " is paused"
}

func (r remediation) suspension() suspended {
	for i := range suspensions {
		if reason, next, ok := suspensions[i].applies(r); ok {
			return suspended{by: &suspensions[i], reason: reason, next: next}
		}
	}
	return suspended{}
}

// suspended is the suspension that applies, with its reason. by is nil if none applies.
type suspended struct {
	by           *suspension
	reason, next string
}

// suspend returns the event that freezes or thaws a remediation. For the same rule, it returns
// another Frozen only if next has changed, or if the reason has changed and comparesReason is true
// for the rule.
func (r remediation) suspend() []Event {
	switch {
	case r.by == nil && r.Frozen == "":
		return nil
	case r.by != nil && r.by.rule == r.Frozen && r.next == r.FrozenNext && (r.reason == r.FrozenReason || !comparesReason(r.by.rule)):
		return nil
	case r.by == nil:
		return []Event{Thawed{}}
	default:
		return []Event{Frozen{Rule: r.by.rule, Reason: r.reason, Next: r.next}}
	}
}

// foreignReplicas reports whether replicas are neither the original nor the requested value, or another client restored them before a new machine existed.
// After the request is undone, no more machines are requested, and replicas may have any value.
func (r remediation) foreignReplicas() bool {
	if !r.scales() || r.Scale == ScaleBack || r.isCancelling() || r.in(Settling) || r.method.requesting(r) {
		return false
	}
	return r.replicas != r.Request.From || r.Scale == ScaleUp && r.Replacement.UID == "" && len(r.newMachines) == 0 && !r.ownerRollingOut()
}
