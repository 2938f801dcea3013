package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"scute.dev/kube/object"
)

// Quorum contains the numbers of etcd's voters, of its learners, and of the voters that answer.
//
// A voter may be added if the answering voters stay a majority even if the new member fails. A
// silent voter may be removed if the answering voters are a majority of the remaining ones. A
// single voter may always get a second one, because the new member joins as a learner, and etcd
// promotes it only when it has caught up (etcd: runtime reconfiguration guide,
// strict-reconfig-check).
type Quorum struct {
	Voters, Learners, Answering int
	// Silent contains the nodes of the voters that did not answer or could not be queried.
	Silent []string
}

func majority(voters int) int { return voters/2 + 1 }

// Count returns the quorum of etcd's members.
func Count(e *Etcd) Quorum {
	var q Quorum
	if e == nil {
		return q
	}
	for _, m := range e.Members {
		if m.Learner {
			q.Learners++
			continue
		}
		q.Voters++
		if m.Answers == object.True {
			q.Answering++
		} else {
			q.Silent = append(q.Silent, m.Node)
		}
	}
	return q
}

// Lost reports whether the answering voters are not a majority.
func (q Quorum) Lost() bool { return q.Voters == 0 || q.Answering < majority(q.Voters) }

// MayAdd reports whether quorum is kept even if a new member joins and fails.
func (q Quorum) MayAdd() bool {
	return !q.Lost() && (q.Voters == 1 || q.Answering >= majority(q.Voters+1))
}

// MayRemove reports whether quorum is kept when a voter is removed. answers reports whether this
// voter answers.
func (q Quorum) MayRemove(answers bool) bool {
	return !q.Lost() && q.Voters > 1 && q.Answering-boolToInt(answers) >= majority(q.Voters-1)
}

// MayStop reports whether quorum is kept while a voter is stopped, for a reboot. answers reports
// whether this voter answers.
func (q Quorum) MayStop(answers bool) bool {
	return q.Answering-boolToInt(answers) >= majority(q.Voters)
}

// Tolerance returns the number of answering voters that may fail before quorum is lost, or -1 if it is lost.
func (q Quorum) Tolerance() int {
	if q.Lost() {
		return -1
	}
	return q.Answering - majority(q.Voters)
}

func (e *Etcd) alarmed(kind string) []string {
	if e == nil {
		return nil
	}
	var nodes []string
	for _, alarm := range e.Alarms {
		if node, ok := strings.CutPrefix(alarm, kind+" of "); ok {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// addsDespiteSilent reports whether etcd would accept a new member even if a voter is not connected
// (mayAddMember in etcd's server).
func (f *Facts) addsDespiteSilent() bool {
	return f.Etcd != nil && f.Etcd.AddsByQuorum && Count(f.Etcd).MayAdd()
}

// hasNamesake reports whether a dead voter has the same name in etcd as the machine's member, and
// therefore no new member can be added. The owner identifies members by name, so it removes the
// dead member only when the machine is gone.
func (f *Facts) hasNamesake(m *Machine) bool {
	return f.Etcd != nil && !f.addsDespiteSilent() && m.Node != "" && slices.ContainsFunc(f.Etcd.Members, func(of Member) bool { return of.Namesake == m.Node && !of.Learner })
}

// member returns the etcd member of a machine, or nil if etcd does not list one.
func (e *Etcd) member(m *Machine) *Member {
	if e == nil || m.Node == "" {
		return nil
	}
	return find(e.Members, func(of *Member) bool { return of.Node == m.Node })
}

// votes reports whether a machine's etcd member is a voter (member), and whether this voter answers
// (alive). For a machine that never joined, it counts the voters that belong to no machine, because
// that machine may have added them.
func (f *Facts) votes(m *Machine) (alive, member bool) {
	switch {
	case f.Owner.ExternalEtcd || !f.isControlPlane() || f.Etcd == nil:
		return false, false
	case m.Node == "":
		for _, of := range f.Etcd.Members {
			if !of.Learner && f.machineOf(of) == nil {
				alive, member = alive || of.Answers != object.False, true
			}
		}
		return alive, member
	default:
		of := f.Etcd.member(m)
		member = of != nil && !of.Learner
		return member && of.answering(), member
	}
}

// maySpare reports whether quorum is kept when the machine is deleted.
func (f *Facts) maySpare(m *Machine) bool {
	alive, member := f.votes(m)
	return !member || Count(f.Etcd).MayRemove(alive)
}

// hasEnoughMembers reports whether the owner, by its own check, would find a majority of healthy
// etcd members after removing the machine in the parameter without, or nil, and after adding a
// machine if more is true. Like the owner's check (targetEtcdClusterHealthy), it uses the
// conditions of the machines, counts members without a machine as healthy, and permits no learners.
func (f *Facts) hasEnoughMembers(without *Machine, more bool) bool {
	if f.Etcd == nil { // etcd was not asked yet
		return true
	}
	voters, well := 0, 0
	for _, member := range f.Etcd.Members {
		m := f.machineOf(Member{Node: cmp.Or(member.Namesake, member.Node)})
		if m != nil && m == without {
			continue
		}
		if member.Learner || member.Unstarted {
			return false
		}
		voters++
		well += boolToInt(m == nil || m.Conditions[controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition].Status == object.True)
	}
	if more {
		well += boolToInt(voters < 2) // otherwise the owner assumes that the new member fails
		voters++
	}
	return well >= majority(voters)
}

// machineOf returns the machine on whose node a member runs, or nil.
func (f *Facts) machineOf(member Member) *Machine {
	return find(f.Machines, func(m *Machine) bool { return m.Node == member.Node })
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// unevenWarning returns a warning if the machines of a control plane are not spread evenly over the
// failure domains, so that the failure of one domain would stop more machines than necessary. It
// returns "" otherwise.
func (f *Facts) unevenWarning() string {
	if !f.isControlPlane() || len(f.Cluster.FailureDomains) < 2 {
		return ""
	}
	var counts []string
	least, most := len(f.Machines), 0
	for _, domain := range slices.Sorted(slices.Values(f.Cluster.FailureDomains)) {
		n := len(f.where(func(m *Machine) bool { return m.FailureDomain == domain }))
		least, most = min(least, n), max(most, n)
		counts = append(counts, fmt.Sprintf("%s %d", domain, n))
	}
	if most-least < 2 {
		return ""
	}
	return "the machines are not spread evenly over the failure domains now: " + strings.Join(counts, ", ")
}
