package remediator

import (
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/api/v1alpha1"
)

// Notice is a sign that a machine is about to stop, though it is healthy.
type Notice struct {
	Type  v1alpha1.NoticeType
	Key   string
	Value string // "" is any
	// Timed says that the value is the time at which the machine stops. It is replaced from Lead before that on.
	Timed bool
	Lead  time.Duration
}

// idle is how far off the end of a wait is taken to be that only a change of the object ends.
const idle = 24 * time.Hour

// onNode says that the notice is found on the Node.
func (n Notice) onNode() bool { return n.Type != v1alpha1.NoticeMachineAnnotation }

// String is the notice as reasons name it.
func (n Notice) String() string {
	place := map[v1alpha1.NoticeType]string{
		v1alpha1.NoticeNodeCondition: "Node condition", v1alpha1.NoticeNodeTaint: "Node taint",
		v1alpha1.NoticeNodeAnnotation: "Node annotation", v1alpha1.NoticeMachineAnnotation: "Machine annotation",
	}
	return place[n.Type] + " " + n.Key
}

// on is what the notice says of a machine; there is false without it.
func (n Notice) on(m *Machine, mark *MachineMarked, now time.Time) (h Health, there bool) {
	value, there := n.read(m, mark)
	if !there || n.Value != "" && value != n.Value {
		return Health{}, false
	}
	h = Health{State: Unhealthy, Source: FromNotice, Reason: n.String()}
	if n.Timed {
		h.Reason += " " + value
		stops, err := time.Parse(time.RFC3339, value)
		switch left := stops.Add(-n.Lead).Sub(now); {
		case err != nil: // nobody knows when: people see the mark, and nothing is begun
			h.State, h.Reason, h.Left = Failing, n.String()+" "+notATime, idle
		case left > 0:
			h.State, h.Left = Failing, left
		}
	}
	if n.onNode() {
		h.Since = now
		if mark != nil && !mark.Seen[h.Reason].IsZero() {
			h.Since = mark.Seen[h.Reason]
		}
	}
	return h, true
}

const notATime = "is not a time, as 2026-01-31T18:00:00Z"

// read is the value of the notice. A Node that cannot be read, or is gone because the machine stops, has what it had when it was read
// last.
func (n Notice) read(m *Machine, mark *MachineMarked) (value string, there bool) {
	switch {
	case n.Type == v1alpha1.NoticeMachineAnnotation:
		value, there = m.Annotations[n.Key]
	case m.Node == "":
	case !m.nodeRead() || m.OnNode.Conditions == nil:
		return n.remembered(mark)
	case n.Type == v1alpha1.NoticeNodeCondition:
		value = string(m.OnNode.Conditions[n.Key].Status)
		there = value != ""
	case n.Type == v1alpha1.NoticeNodeTaint:
		value, there = m.OnNode.Taints[n.Key]
	default:
		value, there = m.OnNode.Annotations[n.Key]
	}
	return value, there
}

// remembered is the value as the log has it: in the reasons that were seen.
func (n Notice) remembered(mark *MachineMarked) (value string, there bool) {
	if mark == nil {
		return "", false
	}
	for _, reason := range slices.Sorted(maps.Keys(mark.Seen)) {
		if reason == n.String() {
			return n.Value, true
		}
		if value, timed := strings.CutPrefix(reason, n.String()+" "); timed && n.Timed {
			return value, true
		}
	}
	return "", false
}

// noticed says that the machine is about to stop.
func (u *UnhealthyMachine) noticed() bool { return u.Mark != nil && u.Mark.Source == FromNotice }

// failed says that the machine is marked because something is wrong with it, which counts for a mass failure.
func (u *UnhealthyMachine) failed() bool { return u.Mark != nil && (!u.noticed() || u.Mark.Failing) }
