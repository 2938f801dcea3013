package remediator

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/kube/object"
)

// Quorum is the arithmetic of etcd's members, from what each of them answered itself.
//
// Adding a voter is allowed while those that answer are a majority even if the new member fails; removing one that does
// not answer is allowed while those that answer are a majority of the rest. A single voter may always get a second one:
// it joins as a learner, and etcd promotes it only when it has caught up (etcd: runtime reconfiguration guide,
// strict-reconfig-check).
type Quorum struct {
	Voters, Learners, Answering int
	// Silent members: no answer, or none that could be had.
	Silent []string
}

func majority(voters int) int { return voters/2 + 1 }

// Count the members.
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

// Lost says that the voters that answer are no majority.
func (q Quorum) Lost() bool { return q.Voters == 0 || q.Answering < majority(q.Voters) }

// MayAdd says that quorum is kept even if a new member joins and fails.
func (q Quorum) MayAdd() bool {
	return !q.Lost() && (q.Voters == 1 || q.Answering >= majority(q.Voters+1))
}

// MayRemove says that quorum is kept when a voter is removed that answers, or one that does not.
func (q Quorum) MayRemove(answers bool) bool {
	left := q.Answering
	if answers {
		left--
	}
	return !q.Lost() && q.Voters > 1 && left >= majority(q.Voters-1)
}

// MayStop says that quorum is kept while a voter is away for a while, for a reboot.
func (q Quorum) MayStop(answers bool) bool {
	left := q.Answering
	if answers {
		left--
	}
	return left >= majority(q.Voters)
}

// Tolerates is how many more of those that answer may fail; -1 when quorum is lost.
func (q Quorum) Tolerates() int {
	if q.Lost() {
		return -1
	}
	return q.Answering - majority(q.Voters)
}

// alarmed are the members for which an alarm of this kind is raised.
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

// addsBesideSilent reports whether etcd accepts a new member although a voter is not connected (mayAddMember in etcd's server).
func (f *Facts) addsBesideSilent() bool {
	return f.Etcd != nil && f.Etcd.ByQuorum && Count(f.Etcd).MayAdd()
}

// namesake reports whether a dead member of etcd has the name of the machine's, and keeps new ones out. Its owner knows members by their names,
// and so removes that one only when the machine is gone.
func (f *Facts) namesake(m *Machine) bool {
	return f.Etcd != nil && !f.addsBesideSilent() && m.Node != "" && slices.ContainsFunc(f.Etcd.Members, func(of Member) bool { return of.Namesake == m.Node && !of.Learner })
}

// member of a machine; nil when etcd lists none.
func (e *Etcd) member(m *Machine) *Member {
	if e == nil || m.Node == "" {
		return nil
	}
	for i := range e.Members {
		if e.Members[i].Node == m.Node {
			return &e.Members[i]
		}
	}
	return nil
}

// uneven warns of a control plane whose machines are not spread over the failure domains as well as they could be: one that
// fails would take more of them than it must. "" when they are, or where there are no domains.
func (f *Facts) uneven() string {
	if !f.isControlPlane() || len(f.Cluster.FailureDomains) < 2 {
		return ""
	}
	in := make(map[string]int)
	for i := range f.Machines {
		in[f.Machines[i].FailureDomain]++
	}
	var told []string
	least, most := len(f.Machines), 0
	for _, domain := range slices.Sorted(slices.Values(f.Cluster.FailureDomains)) {
		n := in[domain]
		least, most = min(least, n), max(most, n)
		told = append(told, fmt.Sprintf("%s %d", domain, n))
	}
	if most-least < 2 {
		return ""
	}
	return "the machines are not spread evenly over the failure domains now: " + strings.Join(told, ", ")
}
