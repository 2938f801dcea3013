package remediator

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/internal/timespan"
	"scute.dev/kube/object"
)

// The rules that freeze a remediation that has been started.
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

// writes is how much is written while a remediation is frozen.
type writes int

// From nothing to everything; each includes those before it.
const (
	writesNothing writes = iota
	writesMarks          // the marks and requests that people see
	writesBack           // what undoes more than is needed: replicas for which a new machine exists, a hand-over
	writesAll
)

func (w writes) String() string {
	return [...]string{
		"nothing, not even a mark", "marks and requests",
		"what takes back more than is needed; marks and requests", "all as before",
	}[w]
}

// suspension is a reason to freeze a remediation. It is Thawed when the reason has passed, and the time does not count for a
// timeout.
//
// The table of suspensions in docs/design/remediation-states.md is generated from suspensions.
type suspension struct {
	rule   string
	when   string
	writes writes
	// holds gives the reason, and what a human can do; ok is false while it does not apply.
	holds func(r remediation) (reason, next string, ok bool)
	// due is when it begins to apply though nothing else changes; nil where no time brings it about.
	due func(r remediation) time.Time
}

// suspensions in their order: the first that applies is told.
//
//nolint:gochecknoglobals // a table
var suspensions = []suspension{
	{freezeMove, "the cluster is being moved; the log says so", writesNothing, func(r remediation) (string, string, bool) {
		return "the cluster is being moved: " + r.facts.Move, "it continues when the move has ended", r.facts.Move != ""
	}, nil},
	{freezePaused, "the Cluster is paused: it may be on its way to another management cluster", writesNothing, func(r remediation) (string, string, bool) {
		return r.pausedOwner(), untilUnpaused, r.facts.Cluster.Paused
	}, nil},
	{freezePaused, "the machine is paused", writesBack, func(r remediation) (string, string, bool) {
		if r.victim == nil || !r.victim.Paused {
			return "", "", false
		}
		return "machine " + r.victim.Name + " is paused", "it continues when the pause of the machine is removed", true
	}, nil},
	{freezePaused, "the owner is paused", writesMarks, func(r remediation) (string, string, bool) {
		return r.pausedOwner(), untilUnpaused, r.facts.Owner.Paused
	}, nil},
	{freezePolicy, "the RepairPolicy cannot be read, the machine is not gone, and nothing is being taken back", writesBack, func(r remediation) (string, string, bool) {
		p := r.facts.Policy
		if p.Unreadable == "" || r.in(Cancelling, Sparing, Settling) {
			return "", "", false
		}
		return p.unread(), p.correct() + "; or abort the remediation", true
	}, nil},
	{freezePolicy, "the RepairPolicy cannot be read, the machine is gone, and its place is not taken", writesAll, func(r remediation) (string, string, bool) {
		_, done := r.complete()
		return "the machine is gone, and its place is not taken; " + r.facts.Policy.unread(), r.facts.Policy.correct(), r.in(Settling) && r.facts.Policy.Unreadable != "" && !done
	}, nil},
	{freezeForeign, "replicas are neither the original nor the requested value, or were restored before a new machine existed", writesMarks, func(r remediation) (string, string, bool) {
		next := "take the replicas out of the hands of what sets them (a GitOps tool, an autoscaler)"
		if r.facts.isControlPlane() {
			next += ", or allow RolloutSurge"
		}
		return fmt.Sprintf("somebody else set the replicas to %d while %d were asked for instead of %d", r.replicas+r.facts.less, r.Request.To+r.facts.less, r.Request.From+r.facts.less),
			next + "; what was asked for is taken back soon", r.foreign()
	}, nil},
	{freezeHeld, "the machine is being deleted, and a deletion hook of somebody else holds it that the policy does not allow", writesAll, func(r remediation) (string, string, bool) {
		if r.victim == nil || !r.victim.Deleting || len(r.facts.Policy.holding(r.victim)) == 0 {
			return "", "", false
		}
		return "its deletion is held" + hooks(r.facts.Policy.holding(r.victim)), "see to what put the hook there: nothing else happens at " + r.facts.Owner.Name + " meanwhile", true
	}, nil},
	{freezeHeld, "the machine is being deleted for longer than `timeouts.removal`", writesAll, func(r remediation) (string, string, bool) {
		if !r.reached(r.removedBy(r.victim)) {
			return "", "", false
		}
		return fmt.Sprintf("%s has been deleting it for more than %s%s", r.facts.Owner.Name, timespan.Text(r.facts.Policy.Timeouts.Removal), when(len(r.victim.Hooks) > 0, "; it is held%s", hooks(r.victim.Hooks))), "see why the machine does not go: its drain, its volumes, its infrastructure", true
	}, func(r remediation) time.Time { return r.removedBy(r.victim) }},
	{freezeHeld, "the machine is gone, or spared, and the deletion of another one is held by a hook, or lasts longer than `timeouts.removal`: of a control plane, or a new one", writesAll, func(r remediation) (string, string, bool) {
		m, gone := r.hangs(), ""
		if m == nil {
			return "", "", false
		}
		if r.in(Settling) {
			gone = "the machine is gone; "
		}
		return gone + "machine " + m.Name + " is being deleted" + hooks(m.Hooks), "see what holds the deletion of machine " + m.Name + " (its hooks, its drain, its volumes, its infrastructure): nothing else happens at " + r.facts.Owner.Name + " meanwhile", true
	}, remediation.hangsAt},
	{freezeQuorum, "the API server or etcd of a control plane could not be asked for ten seconds, or quorum is lost; the machine is not gone", writesBack, func(r remediation) (string, string, bool) {
		switch {
		case r.facts.withinGracePeriod() && r.Frozen == freezeQuorum:
			return r.FrozenReason, r.FrozenNext, true
		case !r.facts.isControlPlane() || r.in(Settling) || r.facts.withinGracePeriod():
			return "", "", false
		}
		d := blind(r.facts)
		if d == nil {
			return "", "", false
		}
		return d.Reason, d.Next, true
	}, nil},
	{freezeRisk, "nothing is asked for yet, or a hand-over that the owner has not acted on, and it is no longer safe: etcd's members do not allow it, the owner would first take another machine that somebody else asks it for, and that etcd cannot spare, another machine is being deleted, or no other serves the API", writesBack, func(r remediation) (string, string, bool) {
		risk := r.unsafe()
		return risk.why, risk.next, !risk.none()
	}, nil},
	{freezeRequest, "nothing is asked for yet, and pause requests of the RepairPolicy or of RepairLimits ask to begin nothing", writesBack, func(r remediation) (string, string, bool) {
		p, fleet := r.facts.Policy, r.facts.Fleet.Limits.Paused
		if len(fleet) > 0 {
			return "RepairLimits default asks to begin nothing: " + strings.Join(fleet, "; "), "it continues when the pause requests are gone", r.unasked()
		}
		return "RepairPolicy " + p.Name + " is asked to begin nothing: " + strings.Join(p.Paused, "; "), "it continues when the pause requests are gone", r.unasked() && len(p.Paused) > 0
	}, nil},
	{freezeHold, "nothing is asked for yet, or a hand-over that the owner has not acted on, and an operator holds the machine", writesBack, func(r remediation) (string, string, bool) {
		if !r.unasked() && !r.unanswered() || r.unhealthy == nil || !r.unhealthy.held(r.now) {
			return "", "", false
		}
		return "held by an operator" + until(r.unhealthy.HoldUntil) + because(r.unhealthy.HoldWhy), "release it when you have seen enough", true
	}, nil},
	{freezeRefused, "replicas are raised, no new machine exists, the policy does not accept that the machine is deleted first, and the owner says what keeps it from making one: its preflight checks, a quota, a webhook; or it says of a worker that was handed over that it defers the remediation", writesAll, func(r remediation) (string, string, bool) {
		if r.deferred() {
			return r.facts.Owner.Name + " defers the remediation: its condition OwnerRemediated says why", "see to what that names; it continues by itself, or abort it", true
		}
		return r.facts.Owner.Name + " makes no machine: " + r.facts.Owner.Refused, "see to what it names; it continues by itself, or abort it",
			r.facts.Owner.Refused != "" && !r.facts.Policy.Accepts && r.in(Requesting) && r.scales() && r.method.asking(r) && len(r.newMachines) == 0
	}, nil},
	{freezeDenied, "nothing is asked for yet, because the API server has refused to write it for a minute", writesAll, func(r remediation) (string, string, bool) {
		return "what is asked for cannot be written: " + r.failure, "see to what refuses it (RBAC, an admission policy, a quota); it continues by itself, or abort it", r.reached(r.deniedFrom())
	}, remediation.deniedFrom},
}

// deniedFrom is when a write has failed for so long that it is not about to succeed; zero while none fails.
func (r remediation) deniedFrom() time.Time {
	return dueIf(r.failure != "" && r.unasked(), r.failingSince.Add(time.Minute))
}

// hangs is another machine whose deletion does not end, and must before the remediation does; nil without.
func (r remediation) hangs() *Machine {
	for _, m := range r.going {
		if r.in(Settling, Sparing) && (len(m.Hooks) > 0 || r.reached(r.removedBy(m))) {
			return m
		}
	}
	return nil
}

// hangsAt is when the deletion of another machine takes too long, zero while none is being deleted.
func (r remediation) hangsAt() time.Time {
	var first time.Time
	for _, m := range r.going {
		if due := r.removedBy(m); r.in(Settling, Sparing) && !due.IsZero() && (first.IsZero() || due.Before(first)) {
			first = due
		}
	}
	return first
}

// unasked says that nothing of the request is visible in the cluster yet.
func (r remediation) unasked() bool {
	return r.in(Requesting) && r.victim != nil && !r.victim.Deleting && len(r.newMachines) == 0 && r.Scale == ScaleUnseen && r.method.undone(r)
}

// unanswered says that the machine was handed over, and its owner has not begun to delete it.
func (r remediation) unanswered() bool {
	return r.Request.Method == OwnerRemediation && r.in(Requesting) && r.victim != nil && !r.victim.Deleting
}

// deferred reports whether the MachineSet of a worker says that it remediates the machine later: its preflight checks, or other remediations in
// progress, do not let it now. What KubeadmControlPlane defers was looked at before it was asked.
func (r remediation) deferred() bool {
	if !r.unanswered() || r.facts.isControlPlane() {
		return false
	}
	c := r.victim.Conditions[clusterv1.MachineOwnerRemediatedCondition]
	return c.Status == object.False && c.Reason == clusterv1.MachineSetMachineRemediationDeferredReason
}

// unsafe is the risk of a hand-over until the owner has begun to act on it, and of a surge until it is asked for. After that, its
// owner knows best.
func (r remediation) unsafe() risk {
	f := r.facts
	if !f.isControlPlane() || f.Owner.ExternalEtcd || f.Etcd == nil || r.victim == nil || r.victim.Deleting || f.withinGracePeriod() {
		return risk{}
	}
	switch {
	case r.unanswered():
		return f.removed(r.victim)
	case r.Request.Method != OwnerRemediation && r.unasked() && !Count(f.Etcd).MayAdd():
		return f.minority("with a new member that fails")
	default:
		return risk{}
	}
}

const untilUnpaused = "it continues when the pause is removed"

func (r remediation) pausedOwner() string {
	return "the cluster or its " + r.facts.Owner.Kind + " is paused"
}

// suspension looks for the one that applies to what is seen now.
func (r remediation) suspension() suspended {
	for i := range suspensions {
		if reason, next, ok := suspensions[i].holds(r); ok {
			return suspended{by: &suspensions[i], reason: reason, next: next}
		}
	}
	return suspended{}
}

// suspended is the suspension that applies, and why; by is nil without.
type suspended struct {
	by           *suspension
	reason, next string
}

// suspend freezes a remediation, and thaws it. For the same rule it is said again when what a human can do has changed, or what people
// have written.
func (r remediation) suspend() []Event {
	switch {
	case r.by == nil && r.Frozen == "":
		return nil
	case r.by != nil && r.by.rule == r.Frozen && r.next == r.FrozenNext && (r.reason == r.FrozenReason || !stated(r.by.rule)):
		return nil
	case r.by == nil:
		return []Event{Thawed{}}
	default:
		return []Event{Frozen{Rule: r.by.rule, Reason: r.reason, Next: r.next}}
	}
}

// foreign says that replicas are neither the original nor the requested value; or that another client restored them
// before a new machine existed. When the request is undone, no more is requested, and they may have any value.
func (r remediation) foreign() bool {
	if !r.scales() || r.Scale == ScaleBack || r.takingBack() || r.in(Settling) || r.method.asking(r) {
		return false
	}
	return r.replicas != r.Request.From || r.Scale == ScaleUp && r.Replacement.UID == "" && len(r.newMachines) == 0 && !r.rolling()
}
