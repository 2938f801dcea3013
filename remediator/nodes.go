package remediator

import (
	"fmt"
	"slices"
	"time"
)

// nodeReady is the only condition of a Node that its Machine mirrors.
const nodeReady = "Ready"

// ReadsNodes reports whether the policy needs facts of Nodes that their Machines do not have, so that each Node is read in its workload cluster.
func (p Policy) ReadsNodes() bool {
	return slices.ContainsFunc(p.Checks.Node, func(c Check) bool { return c.Type != nodeReady }) || slices.ContainsFunc(p.Checks.Notices, Notice.onNode)
}

// checkNode returns the results of the checks of conditions that only the Node has.
func (c Checks) checkNode(m *Machine, mark *MachineMarked, now time.Time) []Health {
	var all []Health
	for _, check := range c.Node {
		if check.Type == nodeReady {
			continue
		}
		if h, fails := check.checkNode(m, mark, now); fails {
			all = append(all, h)
		}
	}
	return all
}

// checkNode counts the timeout of a check from the time at which scute first observed the failure, or from the condition's last transition if that is
// later. The times of a Node come from its own clock, which may be wrong by any amount. If the Node cannot be read, its last observation counts, and
// the machine becomes neither healthy nor worse.
func (check Check) checkNode(m *Machine, mark *MachineMarked, now time.Time) (h Health, fails bool) {
	h = Health{State: Failing, Source: FromPolicy, Reason: fmt.Sprintf("Node %s %s", check.Type, check.Status), Since: now}
	known, over := false, false
	if mark != nil {
		var first time.Time
		if first, known = mark.FailingSince[h.Reason]; known {
			h.Since, over = first, mark.State == Unhealthy && mark.Reason == h.Reason
		}
	}
	if m.nodeRead() {
		seen, there := m.NodeFacts.Conditions[check.Type]
		if !there || seen.Status != check.Status {
			return Health{}, false
		}
		if known && !over && seen.Since.After(h.Since) && !seen.Since.After(now) {
			h.Since = seen.Since // it was healthy in between
		}
	} else if !known {
		return Health{}, false
	}
	h.Remaining = h.Since.Add(check.Timeout).Sub(now)
	switch {
	case over, h.Remaining <= 0 && m.nodeRead():
		h.State, h.Remaining = Unhealthy, 0
	case h.Remaining <= 0:
		h.Remaining = pollInterval
	}
	return h, true
}

func (m *Machine) nodeRead() bool { return m.NodeFacts != nil && m.NodeFacts.Err == "" }

// checkNodeRead returns a wait for a machine that is unhealthy only because of its Node, which can no longer be read. Otherwise it returns nil.
func (u *UnhealthyMachine) checkNodeRead(m *Machine) *Decision {
	if u.Mark == nil || m.nodeRead() {
		return nil
	}
	if _, rests := u.Mark.FailingSince[u.Mark.Reason]; !rests {
		return nil
	}
	why := "it was not read"
	if m.NodeFacts != nil {
		why = m.NodeFacts.Err
	}
	return waitForHuman("check that the cluster answers, and lets scute read its Nodes", "node-unread", "its Node cannot be read (%s), so the observed failure may have ended", why)
}
