package remediator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
)

// nodeReady is the only condition of a Node that its Machine mirrors.
const nodeReady = "Ready"

// ReadsNodes reports whether the policy needs facts of Nodes that their Machines do not contain. If
// so, each Node is read from its workload cluster.
func (p Policy) ReadsNodes() bool {
	return slices.ContainsFunc(p.Checks.Node, func(c Check) bool { return c.Type != nodeReady }) || slices.ContainsFunc(p.Checks.Notices, Notice.onNode)
}

// checkNode returns the result of a check of a condition that only the Node has. The timeout counts
// from the time at which scute first observed the failure, or from the condition's last transition
// if that is later, because the times in a Node come from its own clock, which may be wrong. If the
// Node cannot be read, the result of the last observation stays: the machine becomes neither
// healthy nor unhealthy.
func (check Check) checkNode(m *Machine, mark MachineMarked, now time.Time) (h Health, fails bool) {
	if check.Type == nodeReady || m.Node == "" {
		return Health{}, false
	}
	h = healthOf(Failing, FromPolicy, fmt.Sprintf("Node %s %s", check.Type, check.Status), time.Time{})
	first, known := mark.FailingSince[h.Reason]
	over := known && mark.State == Unhealthy && mark.Reason == h.Reason
	h.Since = cmp.Or(first, now)
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

// checkNodeRead returns a wait for a machine that is unhealthy because of a condition of its Node,
// if the Node can no longer be read. Otherwise it returns nil.
func (u *UnhealthyMachine) checkNodeRead(m *Machine) *Decision {
	if m.nodeRead() {
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

// Notice defines a sign that a healthy machine is about to stop.
type Notice struct {
	Type  v1alpha1.NoticeType
	Key   string
	Value string // "" for any value
	// Timed means that the value is the time at which the machine stops. Its replacement may start
	// Lead before that time.
	Timed bool
	Lead  time.Duration
}

// idleWait is used as Remaining for a wait that only a change of an object ends.
const idleWait = 24 * time.Hour

func (n Notice) onNode() bool { return n.Type != v1alpha1.NoticeMachineAnnotation }

// String returns the name of the notice in reasons.
func (n Notice) String() string {
	place := map[v1alpha1.NoticeType]string{
		v1alpha1.NoticeNodeCondition: "Node condition", v1alpha1.NoticeNodeTaint: "Node taint",
		v1alpha1.NoticeNodeAnnotation: "Node annotation", v1alpha1.NoticeMachineAnnotation: "Machine annotation",
	}
	return place[n.Type] + " " + n.Key
}

// health returns the health of a machine according to the notice. there reports whether the machine
// has the notice.
func (n Notice) health(m *Machine, mark MachineMarked, now time.Time) (h Health, there bool) {
	value, there := n.readValue(m, mark)
	if !there || n.Value != "" && value != n.Value {
		return Health{}, false
	}
	h = healthOf(Unhealthy, FromNotice, n.String(), time.Time{})
	if n.Timed {
		h.Reason += " " + value
		stops, err := time.Parse(time.RFC3339, value)
		switch left := stops.Add(-n.Lead).Sub(now); {
		case err != nil: // the time is unknown: users see the mark, but no remediation starts
			h.State, h.Reason, h.Remaining = Failing, n.String()+" "+notATime, idleWait
		case left > 0:
			h.State, h.Remaining = Failing, left
		}
	}
	if n.onNode() {
		h.Since = cmp.Or(mark.FailingSince[h.Reason], now)
	}
	return h, true
}

const notATime = "is not a time such as 2026-01-31T18:00:00Z"

// readValue returns the value of the notice on a machine, and whether the machine has the notice.
// If the Node cannot be read, or is gone because the machine has stopped, it returns the last
// observed value.
func (n Notice) readValue(m *Machine, mark MachineMarked) (value string, there bool) {
	switch {
	case n.Type == v1alpha1.NoticeMachineAnnotation:
		value, there = m.Annotations[n.Key]
	case m.Node == "":
	case !m.nodeRead() || m.NodeFacts.Conditions == nil:
		return n.lastValue(mark)
	case n.Type == v1alpha1.NoticeNodeCondition:
		value = string(m.NodeFacts.Conditions[n.Key].Status)
		there = value != ""
	case n.Type == v1alpha1.NoticeNodeTaint:
		value, there = m.NodeFacts.Taints[n.Key]
	default:
		value, there = m.NodeFacts.Annotations[n.Key]
	}
	return value, there
}

// lastValue returns the last observed value of the notice, which the log contains in the keys of
// FailingSince.
func (n Notice) lastValue(mark MachineMarked) (value string, there bool) {
	for _, reason := range slices.Sorted(maps.Keys(mark.FailingSince)) {
		if reason == n.String() {
			return n.Value, true
		}
		if value, timed := strings.CutPrefix(reason, n.String()+" "); timed && n.Timed {
			return value, true
		}
	}
	return "", false
}

// hasNotice reports whether the machine is marked because of a notice.
func (u *UnhealthyMachine) hasNotice() bool { return u.Mark.Source == FromNotice }

// failed reports whether the machine is marked for another reason than a notice, so that it counts for a mass failure.
func (u *UnhealthyMachine) failed() bool { return u.marked() && (!u.hasNotice() || u.Mark.Failing) }
