package remediator

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/view"
)

// decideControlPlane returns the decision about a machine of a control plane by rules b to f of the
// quorum table. checkDangers has excluded the other dangers before.
//
//	a  a majority of voters does not answer, or is unknown     -> Freeze (see Blind)
//	b  maxSurge 0                                             -> the owner deletes first, if the policy accepts that
//	   the machine never became a Node                        -> as c: the owner creates no machine until it is replaced
//	   a rollout, or scaling, waits for this machine          -> as c: the owner remediates before it continues
//	c  the victim's etcd does not answer, or is a learner     -> OwnerRemediation if quorum is kept, else Freeze
//	d  it answers, and all components are healthy             -> a surge
//	e  it answers, but components are broken                  -> a relaxed surge, else OwnerRemediation if quorum is kept
//	f  external etcd                                          -> a surge, a relaxed one, or nothing: see external
func decideControlPlane(m *Machine, f *Facts, stranded []*Machine) Decision {
	c, blocks := caseOf(m, f, stranded), f.blockingRule(m)
	switch {
	case f.isInitializing():
		return c.uninitialized()
	case f.Owner.ExternalEtcd:
		return c.external(blocks)
	case m.Node == "":
		return c.deleteFirst(blocks, "it never joined")
	case f.Owner.RollingOut != "":
		return c.deleteFirst(blocks, "a rollout is in progress and waits for this machine: "+c.describeBroken())
	case blocks != "":
		return c.deleteFirst(blocks, fmt.Sprintf("%s has %s instead of %d, and waits for this one: %s", f.Owner.Name, view.Count(len(f.Machines), "machine"), f.Owner.Replicas, c.describeBroken()))
	case f.Owner.MaxSurge == 0 && !f.Policy.AllowsDeleteFirst:
		return Decision{Verdict: CannotRemediate, Rule: "max-surge-0", Reason: f.Owner.Name + " has maxSurge 0: it deletes a machine before it creates another", Next: "set acceptDeleteFirst in the policy, or maxSurge 1 in the control plane"}
	case f.Owner.MaxSurge == 0:
		return c.deleteFirst("max-surge-0", "maxSurge is 0, and the policy accepts that the machine is deleted first")
	case !c.answers || c.isLearner() || f.hasNamesake(m):
		return c.deleteFirst("c", "its etcd member "+c.describeSilent())
	case len(c.broken) == 0:
		return c.surge()
	default:
		return c.relaxed()
	}
}

// tableCase contains the facts on which the quorum table depends.
type tableCase struct {
	m       *Machine
	f       *Facts
	quorum  Quorum
	answers bool     // the victim's etcd member answers, or etcd is external
	broken  []string // broken components of the victim
	others  []string // other machines with broken components
	healthy int      // number of other machines that serve the API
	joining bool     // another machine has no Node yet, and is not unhealthy
	member  *Member
}

func caseOf(m *Machine, f *Facts, stranded []*Machine) tableCase {
	external := f.Owner.ExternalEtcd
	c := tableCase{m: m, f: f, quorum: Count(f.Etcd), broken: m.brokenComponents(external), member: f.Etcd.member(m), answers: external || f.etcdAnswers(m)}
	for other := range f.all() {
		c.joining = c.joining || other.UID != m.UID && other.Node == "" && !slices.Contains(stranded, other)
		if other.UID == m.UID {
			continue
		}
		broken := other.brokenComponents(external)
		if len(broken) > 0 {
			c.others = append(c.others, other.Name)
		}
		// A machine whose only broken component is its etcd member serves the API if the member
		// answers, or if the victim never joined.
		if len(broken) == 0 || slices.Equal(broken, []string{etcdMember}) && (f.etcdAnswers(other) || m.Node == "") {
			c.healthy++
		}
	}
	return c
}

func (c tableCase) describeBroken() string {
	switch {
	case !c.answers || c.f.hasNamesake(c.m):
		return "its etcd member " + c.describeSilent()
	case len(c.broken) == 0:
		return "its update in place does not end"
	}
	return strings.Join(c.broken, ", ") + " unhealthy"
}

func (c tableCase) describeSilent() string {
	switch {
	case c.member == nil:
		return "is not in the member list"
	case c.member.Answers == object.True && !c.member.Learner:
		return "has the name of a dead member, which its owner removes only with the machine"
	case c.member.Answers == object.True:
		return "has not become a voter"
	case c.member.Answers == object.Unknown:
		return "could not be asked (" + c.member.Reason + ")"
	default:
		return "does not answer (" + c.member.Reason + ")"
	}
}

// external returns the decision by rule f. Before the owner deletes a machine in its own
// remediation, it checks the members of etcd. It does not know the members of an external etcd, and
// refuses. So the replacement must be created first, or an operator must delete the machine.
func (c tableCase) external(blocks string) Decision {
	f := c.f
	why := "it never joined"
	if c.m.Node != "" {
		why = c.describeBroken()
	}
	switch broken := blocks != "" || len(c.broken) > 0; {
	case broken && len(f.Machines) < 2:
		return c.single(why)
	case f.Owner.RollingOut != "":
		return c.manual(why, "a rollout waits for it")
	case int(f.Owner.Replicas) != len(f.Machines):
		return c.manual(why, fmt.Sprintf("%s has %s instead of %d", f.Owner.Name, view.Count(len(f.Machines), "machine"), f.Owner.Replicas))
	case f.Owner.MaxSurge == 0:
		return Decision{Verdict: CannotRemediate, Rule: "max-surge-0", Reason: f.Owner.Name + " has maxSurge 0, and does not remediate machines itself when etcd is external", Next: "set maxSurge 1 in the control plane, or delete the machine: " + f.Owner.Name + " creates another"}
	case !broken:
		return c.surge()
	case len(c.others) > 0 || c.healthy == 0:
		return c.manual(why, "components of "+strings.Join(c.others, ", ")+" are unhealthy too")
	case !f.Owner.Tested || !f.Policy.allows(v1alpha1.MethodRelaxedSurge):
		return c.manual(why, "RelaxedSurge is not allowed, or this version of the control plane's controller was not tested with it")
	default:
		return c.method("f", why+", etcd is external: the replacement comes first, with relaxed preflight checks of the owner", true)
	}
}

// manual returns a decision that needs a human, because scute deletes no machines and the owner refuses to.
func (c tableCase) manual(why, obstacle string) Decision {
	return *cannotRemediate("delete the machine by hand (kubectl delete machine): "+c.f.Owner.Name+" creates another", "external-etcd",
		"%s; etcd is external, so %s remediates no machine itself, and no replacement can come first: %s", why, c.f.Owner.Name, obstacle)
}

func (c tableCase) single(why string) Decision {
	next := "fix the machine by hand, or restore the cluster from a backup"
	if c.answers && !c.f.Owner.ExternalEtcd {
		next = "fix the machine by hand: its etcd answers, and has all data"
	}
	return Decision{Verdict: CannotRemediate, Rule: "single", Reason: "the only control plane machine is broken (" + why + "): it cannot be replaced without losing etcd", Next: next}
}

// uninitialized returns the decision about a first machine that never started. Nothing is lost when
// its owner deletes it.
func (c tableCase) uninitialized() Decision {
	const why = "the control plane has not been initialized, and nothing is lost with its first machine"
	if !c.f.Policy.allows(v1alpha1.MethodOwnerRemediation) {
		return noMethod(why + ": only OwnerRemediation helps")
	}
	return Decision{Verdict: OwnerRemediation, Rule: "uninitialized", Reason: why + ": its owner deletes it, and creates another"}
}

// decideDeleteFirst returns the decision to delete a machine first, because an attempt to create
// its replacement first timed out. The machine may occupy the capacity that the replacement needs.
func (f *Facts) decideDeleteFirst(m *Machine, stranded []*Machine) Decision {
	const rule, why = "no-replacement", "no replacement was ready in time, and the policy accepts that the machine is deleted first"
	switch {
	case f.isControlPlane():
		return caseOf(m, f, stranded).deleteFirst(rule, why)
	case !f.inCurrentSet(m) || !f.Policy.allows(v1alpha1.MethodOwnerRemediation):
		return Decision{Verdict: CannotRemediate}
	default:
		return Decision{Verdict: OwnerRemediation, Rule: rule, Reason: why}
	}
}

// deleteFirst returns the decision to have the owner delete the machine first. It returns a
// different decision if quorum would be at risk without the machine, or if the owner would not
// delete it.
func (c tableCase) deleteFirst(rule, why string) Decision {
	alive, member := c.f.votes(c.m)
	q, other := c.quorum, c.f.riskOfOther(c.m)
	switch {
	case c.f.Owner.ExternalEtcd:
		return c.manual(why, "the policy allows none that is available")
	case len(c.f.Machines) < 2:
		return c.single(why)
	case !c.f.maySpare(c.m):
		return *freeze("bring back "+strings.Join(q.Silent, ", "), rule, "%s, and without it %d of %d voters would answer: quorum is at risk", why, q.Answering-boolToInt(alive), q.Voters-1)
	case !other.none():
		return *freeze(other.next, rule, "%s, and %s", why, other.why)
	case q.Learners > boolToInt(c.isLearner()):
		return *c.checkLearner()
	case c.m.Node != "" && !c.f.hasEnoughMembers(c.m, false):
		return *waitForHuman("find out why the owner counts members that answer as unhealthy: check the condition EtcdMemberHealthy of the other machines",
			"owner-counts", "%s, and %s remediates no machine while it counts fewer than a majority of the other members as healthy", why, c.f.Owner.Name)
	case c.healthy == 0:
		return Decision{Verdict: Freeze, Rule: rule, Reason: why + ", and no other machine has only healthy components", Next: "fix one of the other machines first"}
	case !c.f.Policy.allows(v1alpha1.MethodOwnerRemediation):
		return noMethod(why + ": only OwnerRemediation helps")
	case c.leadsUnreachable():
		return *waitForHuman("restart its kubelet, let scuted reach port 2379 of the machine, or power the machine off",
			"leader", "%s, and it leads etcd: the leadership cannot be moved, and %s deletes no machine that leads", why, c.f.Owner.Name)
	default:
		return Decision{Verdict: OwnerRemediation, Rule: rule, Reason: fmt.Sprintf("%s: the owner deletes it first; %d of %d voters answer without it",
			why, q.Answering-boolToInt(alive), q.Voters-boolToInt(member))}
	}
}

// checkLearner returns a wait until the learner of etcd becomes a voter, or is removed because its machine is gone.
func (c tableCase) checkLearner() *Decision {
	member := find(c.f.Etcd.Members, func(member *Member) bool { return member.Learner })
	return waitForHuman("find out why "+member.Node+" does not catch up; if it belongs to no machine, and none is joining, remove it (etcdctl member list, etcdctl member remove)",
		"learner", "etcd has a learner, %s: it votes when it has caught up, and is removed when its machine is gone", member.Node)
}

// leadsUnreachable reports whether the machine's member is the leader, as the other members report,
// but cannot be reached. Such a member is alive, because another leader is soon elected if a leader
// dies. Only the leader can transfer its leadership, and the owner cannot reach it if scute cannot.
func (c tableCase) leadsUnreachable() bool {
	return c.member != nil && c.member.Leader && c.member.Answers == object.Unknown
}

// isLearner reports whether the machine's own member is a learner. A machine that never joined may
// have added a learner. If no other machine is joining, the stray learner is assumed to belong to
// this machine. If the assumption is wrong, the other machine that never joined is replaced next.
func (c tableCase) isLearner() bool {
	if c.member != nil || c.m.Node != "" {
		return c.member != nil && c.member.Learner
	}
	return !c.joining && c.f.hasStrayLearner()
}

// surge returns the decision by rule d: a surge, if the owner would create a machine and quorum is
// kept even if its member fails.
func (c tableCase) surge() Decision {
	external := c.f.Owner.ExternalEtcd
	switch {
	case !external && !c.quorum.MayAdd():
		return Decision{Verdict: Freeze, Rule: "d", Reason: fmt.Sprintf("%d of %d voters answer: a new member that fails would cost quorum, and this machine's own member is healthy", c.quorum.Answering, c.quorum.Voters), Next: "bring back " + strings.Join(c.quorum.Silent, ", ")}
	case c.checkSilentVoter() != nil:
		return *c.checkSilentVoter()
	case c.quorum.Learners > 0:
		return *c.checkLearner()
	case len(c.others) > 0:
		others := strings.Join(c.others, ", ")
		return *waitForHuman("if no check of the policy fails for them, find out why their components are unhealthy",
			ruleAnotherBroken, "components of %s are unhealthy: the owner creates no machine until they recover, and a machine with unhealthy components comes first", others)
	}
	reason := "its etcd member answers and its components are healthy: the replacement comes first"
	if external {
		reason = "etcd is external: the replacement comes first"
	}
	return c.method("d", reason, false)
}

// checkSilentVoter returns a wait if a voter does not answer, or nil, because etcd accepts no new
// member while a voter is not connected (mayAddMember in etcd). It ignores a voter that could not
// be asked, because that voter may be connected. It returns nil for an external etcd, to which
// machines add no members.
func (c tableCase) checkSilentVoter() *Decision {
	if c.f.Owner.ExternalEtcd || c.f.Etcd == nil || c.f.addsDespiteSilent() {
		return nil
	}
	member := find(c.f.Etcd.Members, func(member *Member) bool { return !member.Learner && member.Answers == object.False })
	if member == nil {
		return nil
	}
	next := "bring back etcd on " + member.Node + ", or have its machine replaced first; if its machine is gone, remove the member (etcdctl member list, etcdctl member remove)"
	if member.Namesake != "" {
		next = "remove " + member.Node + " (etcdctl member list, etcdctl member remove): " + c.f.Owner.Name + " does not while a machine has its name"
	}
	return waitForHuman(next, "silent-member",
		"etcd accepts no new member while %s does not answer, so a replacement would never join", member.Node)
}

// relaxed returns the decision by rule e, for a machine whose etcd member answers and whose other
// components are broken, for example because its kubelet is dead.
func (c tableCase) relaxed() Decision {
	why := strings.Join(c.broken, ", ") + " unhealthy, etcd answers"
	if c.mayRelax() {
		if d := c.method("e", why+": the replacement comes first, with relaxed preflight checks of the owner", true); d.Verdict != CannotRemediate {
			return d
		}
	}
	return c.deleteFirst("e", why)
}

// mayRelax reports whether the owner's preflight checks may be relaxed to replace this machine,
// which has broken components.
func (c tableCase) mayRelax() bool {
	f := c.f
	if !f.Owner.Tested || f.Owner.MaxSurge == 0 || !f.Policy.allows(v1alpha1.MethodRelaxedSurge) || c.healthy == 0 || len(c.others) > 0 {
		return false
	}
	if f.Owner.ExternalEtcd {
		return len(f.Machines) >= 2
	}
	return len(f.Machines) >= 3 && c.quorum.Learners == 0 && c.quorum.MayAdd() && c.checkSilentVoter() == nil && f.hasEnoughMembers(nil, true)
}

// method returns the decision how to surge: by the owner's own rollout if possible, or by more
// replicas. If the policy allows neither, it returns the decision to delete the machine first, or
// CannotRemediate.
func (c tableCase) method(rule, reason string, relaxed bool) Decision {
	f := c.f
	triggered := f.Owner.CertificateTrigger || f.Owner.Tested && c.m.ClonedFrom != ""
	switch {
	case triggered && f.Policy.allows(v1alpha1.MethodRolloutSurge):
		return Decision{Verdict: RolloutSurge, Relaxed: relaxed, Rule: rule, Reason: reason}
	case !f.Policy.allows(v1alpha1.MethodSurge) && f.Policy.allows(v1alpha1.MethodOwnerRemediation):
		return c.deleteFirst(rule, "the policy allows no surge that is available")
	case !f.Policy.allows(v1alpha1.MethodSurge):
		return noMethod("RolloutSurge needs a tested version of the control plane's controller, or certificatesExpiryDays; Surge is not allowed")
	}
	return c.byReplicas(rule, reason, relaxed)
}

// byReplicas returns the decision to surge by more replicas, or a wait if they cannot be requested
// now. A control plane that scales up keeps the conditions that report why it cannot create a
// machine. In a rollout it resets these conditions in the same reconcile (updateStatus of the
// controller of KubeadmControlPlane).
func (c tableCase) byReplicas(rule, reason string, relaxed bool) Decision {
	f := c.f
	if d := f.checkOtherAnnotations(c.m); d != nil {
		return *d
	}
	if n := f.desiredReplicas(); n != f.Owner.Replicas {
		return *waitForHuman(fmt.Sprintf("if this lasts, find out why %s is not updated: check the condition TopologyReconciled of Cluster %s", f.Owner.Name, f.Owner.Cluster),
			ruleScaling, "the topology of Cluster %s requests %s, and %s still has %d replicas: scute requests more after that", f.Owner.Cluster, view.Count(int(n), "machine"), f.Owner.Name, f.Owner.Replicas)
	}
	return Decision{Verdict: Surge, Relaxed: relaxed, Rule: rule, Reason: reason}
}
