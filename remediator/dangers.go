package remediator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/internal/plural"
	"scute.dev/internal/timespan"
	"scute.dev/kube/object"
)

// dangers: rules a and b. Nothing is begun on facts that could not be had, nor into something that moves by itself.
func (s *State) dangers(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	if d := s.occupied(); d != nil {
		return d
	}
	if f.isControlPlane() {
		if d := blind(f); d != nil {
			return d
		}
	}
	if d := u.unread(m); d != nil {
		return d
	}
	blocks := f.blocks(m)
	_, outwaited := s.outwaited(u, m, f, now)
	switch {
	case f.Cluster.UpgradePending:
		d := wait(ruleRollout, "%s is not at the version of the cluster's topology yet, and neither makes nor remediates a machine before", f.Owner.Name)
		d.Next = "see what holds the upgrade: its other machines, or an annotation that defers it"
		return d
	case f.Owner.RollingOut != "" && blocks == "" && (f.isControlPlane() || !f.current(m)) && !outwaited:
		next := fmt.Sprintf("see what holds the rollout, if it does not end: the conditions of %s %s", f.Owner.Kind, f.Owner.Name)
		if m.Node == "" {
			next += "; or delete this machine by hand (kubectl delete machine)"
		}
		return ask(next, ruleRollout, "%s: a rollout replaces the machine by itself", f.Owner.RollingOut)
	}
	if f.isControlPlane() {
		if d := s.unstable(m, f, blocks != "" || outwaited); d != nil {
			return d
		}
	}
	switch {
	case len(f.Policy.holding(m)) > 0:
		return ask("see to what put the hook there, or name it in the policy's allowedHooks", ruleHook, "its deletion would be held%s", hooks(f.Policy.holding(m)))
	case f.Owner.Relaxed != "" && !f.stalls(m):
		return f.remediating()
	default:
		return nil
	}
}

// remediating waits while the owner runs a remediation that scute did not ask for. Its annotation names the machine, and is removed once the
// owner has created the replacement.
func (f *Facts) remediating() *Decision {
	machine := "a machine"
	if n, ok := noteOf(f.Owner.Relaxed); ok {
		machine = "machine " + n.Machine
	}
	next := fmt.Sprintf("see why %s makes no machine, if it lasts: the conditions of %s %s, and its machines", f.Owner.Name, f.Owner.Kind, f.Owner.Name)
	if _, gone := f.orphan(); gone && f.staying() >= int(f.wanted()) {
		// Its replicas were lowered meanwhile, or another machine was made by hand: only the next machine has it take the note off.
		next = fmt.Sprintf("%s has as many machines as it is asked for, and makes none: take its annotation %s off", f.Owner.Name, controlplanev1.RemediationInProgressAnnotation)
	}
	return ask(next, "owner-remediation", "%s is remediating %s by itself, until it has made another", f.Owner.Name, machine)
}

// stalls says that the owner cannot end its own remediation because of this machine. The one that it remediated is gone, and it makes no
// other while etcd has a learner (targetEtcdClusterHealthy). It removes a learner of no node only when each of its machines is a node
// (reconcileEtcdMembers), which one that never joined does not become; and it remediates no other one while it has its note of the first.
func (f *Facts) stalls(m *Machine) bool {
	_, gone := f.orphan()
	return gone && m.Node == "" && f.strayLearner()
}

// strayLearner says that etcd lists a learner of no machine's node.
func (f *Facts) strayLearner() bool {
	return f.Etcd != nil && slices.ContainsFunc(f.Etcd.Members, func(member Member) bool { return member.Learner && f.claimed(member) == nil })
}

// joining is the wait for a machine that has not joined, until it has, or is unhealthy itself.
func (f *Facts) joining(other *Machine) *Decision {
	bound := ""
	if startup := f.Policy.Checks.NodeStartup; startup > 0 {
		bound = "; it is unhealthy itself at " + other.startup().Add(startup).UTC().Format(time.RFC3339)
	}
	return ask("see why machine "+other.Name+" does not join: its bootstrap and its infrastructure", ruleScaling, "machine %s has not joined yet%s", other.Name, bound)
}

// going is the wait for a machine that is being deleted.
func going(other *Machine) *Decision {
	return ask("see what holds the deletion of machine "+other.Name+", if it hangs: its hooks, its drain, its volumes, its infrastructure",
		ruleDeletingMachine, "machine %s is being deleted%s, since %s", other.Name, hooks(other.Hooks), other.DeletingSince.UTC().Format(time.RFC3339))
}

// unstable: another machine of the control plane comes or goes. Its owner remediates none meanwhile. A control plane that is stuck without this
// machine's replacement is not waited for.
func (s *State) unstable(m *Machine, f *Facts, stuck bool) *Decision {
	for other := range f.all() {
		switch {
		case other.Deleting:
			return going(other)
		case other.UID == m.UID || other.Node != "":
		case !s.stranded(other):
			return f.joining(other)
		case m.Node != "" && !f.keepsOut(m):
			return ask("see what was decided about machine "+other.Name, ruleScaling, "machine %s never joined, and is unhealthy itself: it comes first", other.Name)
		}
	}
	if int(f.Owner.Replicas) != len(f.Machines) && !stuck {
		return ask(fmt.Sprintf("see why %s does not act, if it lasts: the conditions of %s %s", f.Owner.Name, f.Owner.Kind, f.Owner.Name),
			ruleScaling, "%s there, and %d asked for: %s comes to that number first", machinesAre(len(f.Machines)), f.Owner.Replicas, f.Owner.Name)
	}
	return nil
}

// keepsOut says that no other machine can join because of this one: its member of etcd, or an earlier one of its name, is not connected, or
// is a learner, of which etcd has one at a time (max-learners). A machine that is created meanwhile never joins, and neither does the one that follows it.
func (f *Facts) keepsOut(m *Machine) bool {
	member := f.Etcd.member(m)
	return !f.Owner.ExternalEtcd && member != nil && (member.Learner || f.namesake(m) || !member.answering() && !f.addsBesideSilent())
}

// blocks is the rule by which a control plane waits for this very machine, "" when it continues by itself:
//
//	never-joined     it is no node: its owner makes and deletes no other
//	rollout-blocked  its components are not well, or its update in place does not end: a rollout does not take its next step
//	scaling-blocked  its components are not well: no machine is made or deleted to come to the number that is asked for
//
// Its owner remediates before it rolls out or scales, and so the machine is handed over where quorum allows it.
func (f *Facts) blocks(m *Machine) string {
	unwell := len(m.broken(f.Owner.ExternalEtcd)) > 0 || !f.Owner.ExternalEtcd && !f.answers(m) || f.namesake(m)
	switch {
	case !f.isControlPlane():
		return ""
	case m.Node == "":
		return "never-joined"
	case f.Owner.RollingOut != "" && (unwell || m.updating()):
		return ruleRolloutBlocked
	case int(f.Owner.Replicas) != len(f.Machines) && unwell:
		return "scaling-blocked"
	default:
		return ""
	}
}

// updating says that the machine is updated in place.
func (m *Machine) updating() bool {
	return m.Conditions[clusterv1.MachineUpdatingCondition].Status == object.True
}

// blindFor is how long a control plane that was seen is not seen before anybody is told: one look that fails, or a cluster
// that answers every other one, is no news each time. Nothing is done meanwhile.
const blindFor = 10 * time.Second

// Blind says that a look into a control plane failed: its cluster did not answer, or its etcd did not list its members.
func Blind(f *Facts) bool {
	return f.isControlPlane() && !f.starting() && (f.Cluster.Reach != object.True || !f.Owner.ExternalEtcd && (f.Etcd == nil || f.Etcd.Err != "" || Count(f.Etcd).Voters == 0))
}

// withinGracePeriod: it may be seen again in a moment.
func (f *Facts) withinGracePeriod() bool { return Blind(f) && f.Cluster.BlindFor < blindFor }

// blind: rule a. The cluster is out of reach, or quorum is.
func blind(f *Facts) *Decision {
	freeze := func(rule, next, format string, args ...any) *Decision {
		return &Decision{Verdict: Freeze, Rule: rule, Reason: fmt.Sprintf(format, args...), Next: next}
	}
	if f.starting() {
		return nil
	}
	if d := alarmed(f.Etcd); d != nil {
		return d
	}
	switch q := Count(f.Etcd); {
	case f.Cluster.Reach != object.True:
		return freeze("unreachable", "see whether the cluster's API server answers", "the API server of %s cannot be reached: what is not seen is not acted on", f.Owner.Cluster)
	case f.Owner.ExternalEtcd:
		return nil
	case f.Etcd == nil || f.Etcd.Err != "" || q.Voters == 0:
		why := "nobody asked"
		if f.Etcd != nil {
			why = f.Etcd.Err
		}
		return freeze("etcd-unknown", "look at etcd by hand", "etcd's members could not be listed: %s", why)
	case q.Lost():
		return freeze("quorum-lost", "bring back one of "+strings.Join(q.Silent, ", ")+"; if none can be, restore etcd from a backup", "only %d of %d etcd members answer: quorum is lost", q.Answering, q.Voters)
	default:
		return nil
	}
}

// alarmed: while an alarm is raised for any member, all of them refuse writes (NOSPACE), or everything (CORRUPT): nothing can
// join or leave the cluster, and no machine is at fault. A quorum that is lost as well is the worse news.
func alarmed(e *Etcd) *Decision {
	if full := e.alarmed("NOSPACE"); len(full) > 0 && !Count(e).Lost() {
		return &Decision{
			Verdict: Freeze, Rule: "etcd-alarm",
			Reason: "etcd has the alarm NOSPACE for " + strings.Join(full, ", ") + ": its database is full, and no member takes writes",
			Next:   nextNoSpace,
		}
	}
	if corrupt := e.alarmed("CORRUPT"); len(corrupt) > 0 && !Count(e).Lost() {
		return &Decision{
			Verdict: Freeze, Rule: "etcd-alarm",
			Reason: "etcd has the alarm CORRUPT for " + strings.Join(corrupt, ", ") + ": its data differ from those of the others, and no member answers requests",
			Next:   nextCorrupt,
		}
	}
	return nil
}

func hooks(names []string) string {
	return when(len(names) > 0, " by the hook %s", strings.Join(names, ", "))
}

// holding are the hooks that the policy does not allow: it is unknown when they release a machine.
func (p Policy) holding(m *Machine) []string {
	return slices.DeleteFunc(slices.Clone(m.Hooks), func(hook string) bool {
		return slices.ContainsFunc(p.Hooks, func(allowed string) bool {
			_, name, _ := strings.Cut(hook, "/")
			start, many := strings.CutSuffix(allowed, "*")
			return name == allowed || many && strings.HasPrefix(name, start)
		})
	})
}

// ownersPatience is why a KubeadmControlPlane would not remediate a machine that it is handed; nil when it would, or is not asked to. A
// machine that it made in the remediation of another one has a note of that. It follows checkRetryLimits (remediation.go).
func (f *Facts) ownersPatience(d Decision, m *Machine, now time.Time) *Decision {
	last, ok := noteOf(m.RemediationFor)
	at, err := time.Parse(time.RFC3339, last.Timestamp)
	retry := f.Owner.Retry
	if d.Verdict != OwnerRemediation || !f.isControlPlane() || !ok || err != nil || !now.Before(at.Add(retry.MinHealthy)) {
		return nil
	}
	if !now.After(at.Add(retry.Period)) {
		return ask(fmt.Sprintf("wait, or lower spec.remediation.retryPeriodSeconds of %s %s", f.Owner.Kind, f.Owner.Name), ruleOwnerRetry,
			"its owner is to remediate it (rule %s), but %s remediated machine %s at %s, made this one for it, and remediates it no sooner than %s later (retryPeriodSeconds)",
			d.Rule, f.Owner.Name, last.Machine, at.UTC().Format(time.RFC3339), timespan.Text(retry.Period))
	}
	if retry.Max == nil || last.RetryCount < int(*retry.Max) {
		return nil
	}
	return &Decision{
		Verdict: CannotRemediate, Rule: "owner-max-retry",
		Reason: fmt.Sprintf("its owner is to remediate it (rule %s), but %s has retried what it did for machine %s %s, and does so no more before %s (maxRetry)",
			d.Rule, f.Owner.Name, last.Machine, plural.Of(last.RetryCount, "time"), at.Add(retry.MinHealthy).UTC().Format(time.RFC3339)),
		Next: fmt.Sprintf("find out what makes its machines fail; raise spec.remediation.maxRetry of %s %s, or delete the machine by hand (kubectl delete machine): it makes another", f.Owner.Kind, f.Owner.Name),
	}
}

// ownerRetries is when its owner may remediate a machine that it made in the remediation of another one; zero where nothing says so.
func (f *Facts) ownerRetries(m *Machine) time.Time {
	if m == nil {
		return time.Time{}
	}
	last, ok := noteOf(m.RemediationFor)
	at, err := time.Parse(time.RFC3339, last.Timestamp)
	return dueIf(ok && err == nil, at.Add(f.Owner.Retry.Period))
}
