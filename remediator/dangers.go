package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/view"
)

// checkDangers returns the decision by rules a and b of the quorum table, so that nothing is
// started if facts are missing, or while the owner changes its machines itself. It returns nil if
// neither applies.
func (s *State) checkDangers(u *UnhealthyMachine, m *Machine, f *Facts, now time.Time) *Decision {
	if d := cmp.Or(s.checkDefragmentation(), checkBlind(f), u.checkNodeRead(m)); d != nil {
		return d
	}
	blocks := f.blockingRule(m)
	_, outwaited := s.waitExpired(u, m, f, now)
	switch {
	case f.Cluster.UpgradePending:
		return waitForHuman("find out what delays the upgrade: other machines of the owner, or an annotation that defers it", ruleRollout,
			"%s has not reached the version of the Cluster topology, and neither creates nor remediates a machine before that", f.Owner.Name)
	case f.Owner.RollingOut != "" && blocks == "" && (f.isControlPlane() || !f.inCurrentSet(m)) && !outwaited:
		next := fmt.Sprintf("if the rollout does not end, check the conditions of %s %s", f.Owner.Kind, f.Owner.Name)
		if m.Node == "" {
			next += "; or delete this machine by hand (kubectl delete machine)"
		}
		return waitForHuman(next, ruleRollout, "%s: a rollout replaces the machine anyway", f.Owner.RollingOut)
	}
	if f.isControlPlane() {
		if d := s.checkStable(m, f, blocks != "" || outwaited); d != nil {
			return d
		}
	}
	switch {
	case len(f.Policy.blockingHooks(m)) > 0:
		return waitForHuman("find out who set the hook, or add it to allowedHooks of the policy", ruleHook, "its deletion would not end%s", formatHooks(f.Policy.blockingHooks(m)))
	case f.Owner.Relaxed != "" && !f.stallsOwner(m):
		return f.checkOwnerRemediation()
	default:
		return nil
	}
}

// checkOwnerRemediation returns a wait for a remediation that the owner runs although scute did not
// request it. The owner's annotation remediation-in-progress names the machine. The owner removes
// the annotation when it has created the replacement.
func (f *Facts) checkOwnerRemediation() *Decision {
	machine := "a machine"
	if n, ok := parseNote(f.Owner.Relaxed); ok {
		machine = "machine " + n.Machine
	}
	next := fmt.Sprintf("if this lasts, find out why %s creates no machine: check the conditions of %s %s, and its machines", f.Owner.Name, f.Owner.Kind, f.Owner.Name)
	if _, gone := f.orphan(); gone && f.remainingMachines() >= int(f.desiredReplicas()) {
		// Its replicas were lowered meanwhile, or another machine was created by hand. The owner
		// removes the annotation only when it creates a machine.
		next = fmt.Sprintf("remove the annotation %[2]s from %[1]s, which has as many machines as requested and creates none", f.Owner.Name, controlplanev1.RemediationInProgressAnnotation)
	}
	return waitForHuman(next, "owner-remediation", "%s is remediating %s without scute, until it has created another", f.Owner.Name, machine)
}

// stallsOwner reports whether this machine keeps the owner from finishing its own remediation of
// another machine, which is gone. The owner creates no machine while etcd has a learner
// (targetEtcdClusterHealthy). It removes a learner without a Node only if all machines have Nodes
// (reconcileEtcdMembers), and a machine that never joined has none. Until the owner's remediation
// ends, it remediates no other machine.
func (f *Facts) stallsOwner(m *Machine) bool {
	_, gone := f.orphan()
	return gone && m.Node == "" && f.hasStrayLearner()
}

// hasStrayLearner reports whether etcd lists a learner that runs on no machine's node.
func (f *Facts) hasStrayLearner() bool {
	return f.Etcd != nil && slices.ContainsFunc(f.Etcd.Members, func(member Member) bool { return member.Learner && f.machineOf(member) == nil })
}

// waitForJoin returns the wait for a machine that has not joined. The wait ends when that machine
// joins or becomes unhealthy.
func (f *Facts) waitForJoin(other *Machine) *Decision {
	bound := ""
	if startup := f.Policy.Checks.NodeStartup; startup > 0 {
		bound = "; it counts as unhealthy from " + utc(other.startupFrom().Add(startup))
	}
	return waitForHuman("find out why machine "+other.Name+" does not join: check its bootstrap and its infrastructure", ruleScaling, "machine %s has not joined yet%s", other.Name, bound)
}

func waitForDeletion(other *Machine) *Decision {
	return waitForHuman("if the deletion of machine "+other.Name+" hangs, find out what blocks it: hooks, the drain, volumes or the infrastructure",
		ruleDeletingMachine, "machine %s is being deleted%s, since %s", other.Name, formatHooks(other.Hooks), utc(other.DeletingSince))
}

// checkStable returns a wait while another machine of the control plane is being created or
// deleted, because the owner remediates no machine during that time. If stuck is true, the control
// plane cannot reach its replicas until this machine is replaced, so too few or too many machines
// cause no wait.
func (s *State) checkStable(m *Machine, f *Facts, stuck bool) *Decision {
	for other := range f.all() {
		switch {
		case other.Deleting:
			return waitForDeletion(other)
		case other.UID == m.UID || other.Node != "":
		case !s.stranded(other):
			return f.waitForJoin(other)
		case m.Node != "" && !f.preventsJoin(m):
			return waitForHuman("check the decision about machine "+other.Name, ruleScaling, "machine %s never joined, and is unhealthy: it comes first", other.Name)
		}
	}
	if int(f.Owner.Replicas) != len(f.Machines) && !stuck {
		return waitForHuman(fmt.Sprintf("if this lasts, find out why %s does not act: check the conditions of %s %s", f.Owner.Name, f.Owner.Kind, f.Owner.Name),
			ruleScaling, "%s has %s instead of %d, and must reach that number first", f.Owner.Name, view.Count(len(f.Machines), "machine"), f.Owner.Replicas)
	}
	return nil
}

// preventsJoin reports whether this machine prevents new machines from joining, because its etcd
// member is a learner (etcd permits only one, max-learners) or does not answer, or because a dead
// member has its name.
func (f *Facts) preventsJoin(m *Machine) bool {
	member := f.Etcd.member(m)
	return !f.Owner.ExternalEtcd && member != nil && (member.Learner || f.hasNamesake(m) || !member.answering() && !f.addsDespiteSilent())
}

// blockingRule returns the name of the rule because of which a control plane waits for this machine
// to be replaced, or "" if it does not wait:
//
//	never-joined     it has no Node, so its owner creates and deletes no other machine
//	rollout-blocked  its components are not healthy, or its in-place update does not end, so a rollout does not continue
//	scaling-blocked  its components are not healthy, so no machine is created or deleted to reach the replicas
//
// The owner remediates before it rolls out or scales, so such a machine is handed over if quorum permits it.
func (f *Facts) blockingRule(m *Machine) string {
	unwell := f.isBroken(m) || !f.Owner.ExternalEtcd && !f.etcdAnswers(m) || f.hasNamesake(m)
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

func (m *Machine) updating() bool {
	return m.Conditions[clusterv1.MachineUpdatingCondition].Status == object.True
}

// blindGracePeriod is how long the observation of a control plane must fail before the failure is
// reported. Otherwise each failed attempt would be reported, even for a cluster that answers every
// second attempt. Nothing is started during this time.
const blindGracePeriod = 10 * time.Second

// Blind reports whether the observation of a control plane failed: its cluster did not answer, or
// its etcd did not list its members.
func Blind(f *Facts) bool {
	return f.isControlPlane() && !f.isInitializing() && (f.Cluster.Reachable != object.True || !f.Owner.ExternalEtcd && (f.Etcd == nil || f.Etcd.Err != "" || Count(f.Etcd).Voters == 0))
}

// withinGracePeriod reports whether the observation has failed for less than blindGracePeriod.
func (f *Facts) withinGracePeriod() bool { return Blind(f) && f.Cluster.BlindFor < blindGracePeriod }

// checkBlind returns the decision by rule a for a control plane: a freeze if the API server or etcd
// does not answer, or etcd has an alarm or no quorum. It returns nil otherwise.
func checkBlind(f *Facts) *Decision {
	if !f.isControlPlane() || f.isInitializing() {
		return nil
	}
	if d := checkAlarms(f.Etcd); d != nil {
		return d
	}
	switch q := Count(f.Etcd); {
	case f.Cluster.Reachable != object.True:
		return freeze("check whether the API server of the cluster answers", "unreachable", "the API server of %s cannot be reached, so the state of its machines is unknown", f.Owner.Cluster)
	case f.Owner.ExternalEtcd:
		return nil
	case f.Etcd == nil || f.Etcd.Err != "" || q.Voters == 0:
		why := "it was not asked"
		if f.Etcd != nil {
			why = f.Etcd.Err
		}
		return freeze("check etcd by hand", "etcd-unknown", "the members of etcd could not be listed: %s", why)
	case q.Lost():
		return freeze("bring back one of "+strings.Join(q.Silent, ", ")+"; if that is impossible, restore etcd from a backup", "quorum-lost", "only %d of %d members of etcd answer: quorum is lost", q.Answering, q.Voters)
	default:
		return nil
	}
}

// checkAlarms returns a freeze if etcd has an alarm. It returns nil if quorum is lost, because
// checkBlind then reports that instead. While any member has an alarm, all members refuse writes
// (NOSPACE) or all requests (CORRUPT). So no machine can join or leave the cluster, and no machine
// is at fault.
func checkAlarms(e *Etcd) *Decision {
	for _, problem := range []EtcdProblem{{v1alpha1.EtcdNoSpace, e.alarmed("NOSPACE")}, {v1alpha1.EtcdCorrupt, e.alarmed("CORRUPT")}} {
		if len(problem.Members) > 0 && !Count(e).Lost() {
			return freeze(etcdProblems[problem.Kind].next, "etcd-alarm", "%s", problem.text())
		}
	}
	return nil
}

func formatHooks(names []string) string {
	return formatIf(len(names) > 0, ", blocked by the hook %s", strings.Join(names, ", "))
}

// blockingHooks returns the deletion hooks of a machine that the policy does not allow. It is
// unknown when such a hook lets the deletion continue.
func (p Policy) blockingHooks(m *Machine) []string {
	return slices.DeleteFunc(slices.Clone(m.Hooks), func(hook string) bool {
		return slices.ContainsFunc(p.Hooks, func(allowed string) bool {
			_, name, _ := strings.Cut(hook, "/")
			start, many := strings.CutSuffix(allowed, "*")
			return name == allowed || many && strings.HasPrefix(name, start)
		})
	})
}

// ownerRemediated returns the owner's own remediation in which it created this machine, and the
// time of that remediation. ok is false if the owner created the machine for another reason.
func (m *Machine) ownerRemediated() (last remediationNote, at time.Time, ok bool) {
	last, ok = parseNote(m.RemediationFor)
	at, err := time.Parse(time.RFC3339, last.Timestamp)
	return last, at, ok && err == nil
}

// checkOwnerRetries returns a wait, or CannotRemediate, if decision d is to hand a machine over and
// a KubeadmControlPlane would refuse to remediate it. It follows checkRetryLimits in
// KubeadmControlPlane's remediation.go, which reads the annotation remediation-for of a machine
// that replaced another machine.
func (f *Facts) checkOwnerRetries(d Decision, m *Machine, now time.Time) *Decision {
	last, at, ok := m.ownerRemediated()
	retry := f.Owner.Retry
	switch {
	case d.Verdict != OwnerRemediation || !f.isControlPlane() || !ok || !now.Before(at.Add(retry.MinHealthy)):
		return nil
	case !now.After(at.Add(retry.Period)):
		return waitForHuman(fmt.Sprintf("wait, or lower spec.remediation.retryPeriodSeconds of %s %s", f.Owner.Kind, f.Owner.Name), ruleOwnerRetry,
			"its owner must remediate it (rule %s), but %s remediated machine %s at %s, created this one for it, and waits %s before it remediates this one (retryPeriodSeconds)",
			d.Rule, f.Owner.Name, last.Machine, utc(at), view.Duration(retry.Period))
	case retry.Max == nil || last.RetryCount < int(*retry.Max):
		return nil
	default:
		return cannotRemediate(fmt.Sprintf("find out why its machines fail; raise spec.remediation.maxRetry of %s %s, or delete the machine by hand (kubectl delete machine), and the owner creates another", f.Owner.Kind, f.Owner.Name),
			"owner-max-retry", "its owner must remediate it (rule %s), but %s has retried the remediation of machine %s %s, and does not retry again before %s (maxRetry)",
			d.Rule, f.Owner.Name, last.Machine, view.Count(last.RetryCount, "time"), utc(at.Add(retry.MinHealthy)))
	}
}

// ownerRetryTime returns when the owner may remediate a machine that it created to replace another
// machine, or zero if it may at any time.
func (f *Facts) ownerRetryTime(m *Machine) time.Time {
	if m == nil {
		return time.Time{}
	}
	_, at, ok := m.ownerRemediated()
	return dueIf(ok, at.Add(f.Owner.Retry.Period))
}
