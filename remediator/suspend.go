package remediator

import (
	"fmt"
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

// writeExtent represents the writes that are permitted while a remediation is frozen.
type writeExtent int

// Extents from nothing to everything. Each extent includes all extents before it.
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

// suspension represents a reason to freeze a remediation. When the reason no longer applies, the
// event Thawed is recorded. Timeouts do not count the time in which the remediation was frozen.
//
// The table of suspensions in docs/design/remediation-states.md is generated from suspensions.
type suspension struct {
	rule   string
	when   string
	writes writeExtent
	// applies returns why the remediation is frozen and what a human can do, or the zero value if
	// the suspension does not apply.
	applies func(r remediation) risk
	// due returns when the suspension begins to apply if no fact changes before. It is nil if the
	// suspension does not depend on time.
	due func(r remediation) time.Time
}

// suspensions are in the order of their priority: the first suspension that applies is recorded.
var suspensions = []suspension{
	{freezeMove, "the log has a move of the cluster in progress", writesNothing, func(r remediation) risk {
		return riskIf(r.facts.Move != "", "the cluster is being moved: "+r.facts.Move, "it continues when the move has ended")
	}, nil},
	{freezePaused, "the Cluster is paused: it may be on its way to another management cluster", writesNothing, func(r remediation) risk {
		return riskIf(r.facts.Cluster.Paused, r.pausedOwner(), untilUnpaused)
	}, nil},
	{freezePaused, "the machine is paused", writesUndo, func(r remediation) risk {
		return riskIf(r.victim != nil && r.victim.Paused, "machine "+r.Victim.Name+" is paused", "it continues when the pause of the machine is removed")
	}, nil},
	{freezePaused, "the owner is paused", writesMarks, func(r remediation) risk {
		return riskIf(r.facts.Owner.Paused, r.pausedOwner(), untilUnpaused)
	}, nil},
	{freezePolicy, "the RepairPolicy cannot be read, the machine is not gone, and nothing is being cancelled", writesUndo, func(r remediation) risk {
		p := r.facts.Policy
		return riskIf(p.Unreadable != "" && !r.in(cancelling, sparing, settling), p.unreadableReason(), p.correctAdvice()+"; or abort the remediation")
	}, nil},
	{freezePolicy, "the RepairPolicy cannot be read, the machine is gone, and its replacement is not ready", writesAll, func(r remediation) risk {
		_, done := r.complete()
		return riskIf(r.in(settling) && r.facts.Policy.Unreadable != "" && !done,
			"the machine is gone, and its replacement is not ready; "+r.facts.Policy.unreadableReason(), r.facts.Policy.correctAdvice())
	}, nil},
	{freezeForeign, "replicas are neither the original nor the requested value, or were restored before a new machine existed", writesMarks, func(r remediation) risk {
		n := r.facts.excludedReplicas
		why := fmt.Sprintf("another client set the replicas to %d, and scute requested %d instead of %d", r.replicas+n, r.Request.To+n, r.Request.From+n)
		return riskIf(r.foreignReplicas(), why, "make the client that sets the replicas (a GitOps tool, an autoscaler) ignore them"+
			formatIf(r.facts.isControlPlane(), ", or allow RolloutSurge")+"; scute undoes its request soon")
	}, nil},
	{freezeHeld, "the machine is being deleted, blocked by a deletion hook that the policy does not allow", writesAll, func(r remediation) risk {
		if r.victim == nil || !r.victim.Deleting {
			return risk{}
		}
		hooks := r.facts.Policy.blockingHooks(r.victim)
		return riskIf(len(hooks) > 0, "the machine is being deleted"+formatHooks(hooks), "find out who set the hook; nothing else happens for "+r.facts.Owner.Name+" meanwhile")
	}, nil},
	{freezeHeld, "the machine is being deleted for longer than `timeouts.removal`", writesAll, func(r remediation) risk {
		if !r.reached(r.removalDeadline(r.victim)) {
			return risk{}
		}
		return risk{fmt.Sprintf("%s has been deleting it for more than %s%s", r.facts.Owner.Name, view.Duration(r.facts.Policy.Timeouts.Removal), formatHooks(r.victim.Hooks)), nextDeletion(r.victim)}
	}, func(r remediation) time.Time { return r.removalDeadline(r.victim) }},
	{freezeHeld, "the machine is gone, or has lost its delete annotation, and the deletion of another machine (of a control plane, or a new one) is blocked by a hook, or lasts longer than `timeouts.removal`", writesAll, func(r remediation) risk {
		m := r.hangingMachine()
		if m == nil {
			return risk{}
		}
		return risk{formatIf(r.in(settling), "the machine is gone; ") + "machine " + m.Name + " is being deleted" + formatHooks(m.Hooks), nextDeletion(m) + "; nothing else happens for " + r.facts.Owner.Name + " meanwhile"}
	}, remediation.hangDeadline},
	{freezeQuorum, "the API server or etcd of a control plane could not be asked for ten seconds, or quorum is lost; the machine is not gone", writesUndo, func(r remediation) risk {
		d := checkBlind(r.facts)
		switch {
		case r.facts.withinGracePeriod() && r.Frozen == freezeQuorum:
			return risk{r.FrozenReason, r.FrozenNext}
		case d == nil || r.in(settling) || r.facts.withinGracePeriod():
			return risk{}
		}
		return risk{d.Reason, d.Next}
	}, nil},
	{freezeRisk, "nothing was requested yet, or the owner has not acted on the request to remediate, and it is no longer safe: the members of etcd do not allow it, the owner would first remediate a machine that another client requests and that etcd cannot spare, another machine is being deleted, or no other machine serves the API", writesUndo, remediation.requestRisk, nil},
	{freezeRequest, "nothing was requested yet, and the RepairPolicy or RepairLimits have pause requests", writesUndo, func(r remediation) risk {
		d := r.facts.checkPauseRequests()
		if d == nil || !r.notRequested() {
			return risk{}
		}
		return risk{d.Reason, d.Next}
	}, nil},
	{freezeHold, "nothing was requested yet, or the owner has not acted on the request to remediate, and an operator holds the machine", writesUndo, func(r remediation) risk {
		return riskIf((r.notRequested() || r.awaitsOwner()) && r.unhealthy.held(r.now), r.unhealthy.describeHold(), nextRelease)
	}, nil},
	{freezeRefused, "replicas are raised, no new machine exists, the policy does not accept that the machine is deleted first, and the owner reports what keeps it from creating one: its preflight checks, a quota, a webhook; or it defers the requested remediation of a worker", writesAll, func(r remediation) risk {
		if r.deferred() {
			return risk{r.facts.Owner.Name + " defers the remediation: the condition OwnerRemediated has the reason", nextFix}
		}
		return riskIf(r.facts.Owner.Refused != "" && !r.facts.Policy.AllowsDeleteFirst && r.in(requesting) && r.scales() && r.method.requesting(r) && len(r.newMachines) == 0,
			r.facts.Owner.Name+" creates no machine: "+r.facts.Owner.Refused, nextFix)
	}, nil},
	{freezeDenied, "nothing was requested yet, because the API server has rejected the write for a minute", writesAll, func(r remediation) risk {
		return riskIf(r.reached(r.deniedFrom()), "the request cannot be written: "+r.state.Failure,
			"fix what rejects it (RBAC, an admission policy, a quota), and scute continues by itself; or abort the remediation")
	}, remediation.deniedFrom},
}

func riskIf(so bool, why, next string) risk {
	if !so {
		return risk{}
	}
	return risk{why, next}
}

// deniedFrom returns the time at which the writes that request the replacement have failed for a
// minute, so that they will probably not succeed soon. It returns zero if the last write succeeded
// or the replacement was requested.
func (r remediation) deniedFrom() time.Time {
	return dueIf(r.state.Failure != "" && r.notRequested(), r.state.FailingSince.Add(time.Minute))
}

// hangingMachine returns a machine that must be gone before the remediation ends, and whose
// deletion is blocked by a hook or has lasted too long. It returns nil if there is none.
func (r remediation) hangingMachine() *Machine {
	return pick(r.deleting, func(m *Machine) bool {
		return r.in(settling, sparing) && (len(m.Hooks) > 0 || r.reached(r.removalDeadline(m)))
	})
}

// hangDeadline returns the first time at which the deletion of a machine for which the remediation
// waits has lasted too long, or zero if it waits for none.
func (r remediation) hangDeadline() time.Time {
	var first time.Time
	for _, m := range r.deleting {
		if due := r.removalDeadline(m); r.in(settling, sparing) && !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// notRequested reports whether nothing of the request is visible in the cluster yet.
func (r remediation) notRequested() bool {
	return r.in(requesting) && r.victim != nil && !r.victim.Deleting && len(r.newMachines) == 0 && r.Scale == scaleUnobserved && r.method.undone(r)
}

// awaitsOwner reports whether the owner is asked to remediate the machine and has not started to delete it.
func (r remediation) awaitsOwner() bool {
	return r.Request.Method == OwnerRemediation && r.in(requesting) && r.victim != nil && !r.victim.Deleting
}

// deferred reports whether the MachineSet of a worker defers the requested remediation because of
// its preflight checks or other remediations in progress. It returns false for a
// KubeadmControlPlane, for which scute checks the same before it requests a remediation.
func (r remediation) deferred() bool {
	if !r.awaitsOwner() || r.facts.isControlPlane() {
		return false
	}
	c := r.victim.Conditions[clusterv1.MachineOwnerRemediatedCondition]
	return c.Status == object.False && c.Reason == clusterv1.MachineSetMachineRemediationDeferredReason
}

// requestRisk returns the risk of a request to remediate that the owner has not acted on, or of a
// surge that was not requested yet. It returns no risk later, because scute can no longer prevent
// what the owner does.
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

func nextDeletion(m *Machine) string {
	return "find out what blocks the deletion of machine " + m.Name + ": hooks, the drain, volumes or the infrastructure"
}

func (r remediation) pausedOwner() string {
	return "the cluster or its " + r.facts.Owner.Kind + " is paused"
}

// suspended contains the suspension that applies, by, with its reason. by is nil if none applies.
type suspended struct {
	by *suspension
	risk
}

func (r remediation) suspension() suspended {
	for i := range suspensions {
		if why := suspensions[i].applies(r); !why.none() {
			return suspended{by: &suspensions[i], risk: why}
		}
	}
	return suspended{}
}

// suspend returns the event that freezes or thaws a remediation, or nil if nothing changes. If the
// remediation is already frozen by the same rule, it returns another Frozen only if the advice has
// changed, or if the reason has changed and comparesReason returns true for the rule.
func (r remediation) suspend() []Event {
	switch {
	case r.by == nil && r.Frozen == "":
		return nil
	case r.by != nil && r.by.rule == r.Frozen && r.next == r.FrozenNext && (r.why == r.FrozenReason || !comparesReason(r.by.rule)):
		return nil
	case r.by == nil:
		return []Event{Thawed{}}
	default:
		return []Event{Frozen{Rule: r.by.rule, Reason: r.why, Next: r.next}}
	}
}

// foreignReplicas reports whether the replicas are neither the original nor the requested value, or
// another client restored the original value before a new machine existed. It returns false once
// the request is undone, because the replicas may have any value then.
func (r remediation) foreignReplicas() bool {
	if !r.scales() || r.Scale == scaleRestored || r.isCancelling() || r.in(settling) || r.method.requesting(r) {
		return false
	}
	return r.replicas != r.Request.From || r.Scale == scaleRaised && r.Replacement.UID == "" && len(r.newMachines) == 0 && !r.ownerRollingOut()
}
