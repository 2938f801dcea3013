package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/remediation"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/kube/object"
)

type column struct {
	name string
	// wide columns need -o wide. plane columns are for control planes only.
	wide, plane bool
	// dropOrder is the order in which columns are omitted on a terminal that is too narrow: 1 is omitted first, 0 never.
	dropOrder int
	// below is the name of the line that shows an omitted column below the machine; "" for none.
	below string
	cell  func(v view, m *Machine, o tableOptions) string
}

const (
	columnNext     = "NEXT"
	columnDecision = "DECISION"
)

// columns are the columns in their order. On a narrow terminal the most important ones, the decision and the next step, get a separate line.
//
//nolint:gochecknoglobals // a table
var columns = []column{
	{name: "  MACHINE", cell: func(v view, m *Machine, _ tableOptions) string {
		glyph, as := health(m.Health())
		return v.Paint.Text(as, glyph) + " " + m.Name
	}},
	{name: "NODE", wide: true, cell: func(_ view, m *Machine, _ tableOptions) string { return nodeOf(m) }},
	{name: "VERSION", wide: true, cell: func(_ view, m *Machine, _ tableOptions) string { return cmp.Or(m.Version, "-") }},
	{name: "ZONE", dropOrder: 2, cell: func(_ view, m *Machine, _ tableOptions) string { return m.Zone }},
	{name: "AGE", dropOrder: 4, cell: func(v view, m *Machine, _ tableOptions) string { return term.Span(v.Now.Sub(m.CreatedAt)) }},
	{name: "HEALTH", cell: func(v view, m *Machine, o tableOptions) string { return v.healthOf(m, o) }},
	{name: "ETCD", plane: true, cell: func(v view, m *Machine, _ tableOptions) string { return v.memberOf(m) }},
	{name: "PODS", plane: true, wide: true, cell: func(v view, m *Machine, _ tableOptions) string {
		pods := ""
		for _, pod := range m.Pods {
			pods += v.truth(pod)
		}
		return pods
	}},
	{name: "MARKS", dropOrder: 5, below: "marks", cell: func(_ view, m *Machine, _ tableOptions) string { return strings.Join(m.stateNotes(), ",") }},
	{name: columnDecision, dropOrder: 3, below: "decided", cell: func(v view, m *Machine, _ tableOptions) string { return v.decisionOf(m) }},
	{name: columnNext, dropOrder: 1, below: "next", cell: func(v view, m *Machine, o tableOptions) string { return v.nextOf(m, o) }},
}

// machines renders a row for each machine. Below the row it renders why the machine is not healthy, and the columns that did not fit.
func (v view) machines(o *Owner, list []*Machine, indent string, options tableOptions) []string {
	if len(list) == 0 {
		return []string{indent + "no machine yet"}
	}
	shown := slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		return c.wide && !options.Wide || c.plane && !o.ControlPlane || !c.hasText(v, list, options)
	})
	var below []column
	for v.tooWide(shown, list, indent, options) {
		i := v.nextDropped(shown)
		if i < 0 {
			break
		}
		if shown[i].below != "" {
			below = append([]column{shown[i]}, below...)
		}
		shown = slices.Delete(shown, i, i+1)
	}
	slices.SortStableFunc(below, func(a, b column) int { return cmp.Compare(b.dropOrder, a.dropOrder) })
	lines := v.table(shown, list, indent, options).Lines(v.Paint, 0)
	out := []string{v.fit(lines[0])}
	for i, m := range list {
		out = append(out, v.fit(lines[i+1]))
		out = append(out, v.reasonLines(m, indent+"    ")...)
		for _, c := range below {
			if text := c.cell(v, m, options); text != "" {
				out = append(out, v.renderBelow(indent+"    ", c.below, text, term.Plain)...)
			}
		}
		out = append(out, v.remedyLines(m, indent+"    ")...)
	}
	return out
}

// hasText reports whether a column has text for any machine, or is never omitted.
func (c column) hasText(v view, list []*Machine, o tableOptions) bool {
	if c.dropOrder == 0 {
		return true
	}
	return slices.ContainsFunc(list, func(m *Machine) bool { return c.cell(v, m, o) != "" })
}

func (v view) table(shown []column, list []*Machine, indent string, o tableOptions) *term.Table {
	t := &term.Table{Indent: indent}
	for _, c := range shown {
		t.Header = append(t.Header, c.name)
	}
	for _, m := range list {
		row := make([]string, len(shown))
		for i, c := range shown {
			row[i] = cmp.Or(c.cell(v, m, o), "-")
		}
		t.Add(row...)
	}
	return t
}

func (v view) tooWide(shown []column, list []*Machine, indent string, o tableOptions) bool {
	return v.Width > 0 && slices.ContainsFunc(v.table(shown, list, indent, o).Lines(term.Paint{}, 0), func(line string) bool {
		return term.Width(line) > v.Width
	})
}

// nextDropped returns the column to omit next, -1 for none.
func (view) nextDropped(shown []column) int {
	next := -1
	for i, c := range shown {
		if c.dropOrder > 0 && (next < 0 || c.dropOrder < shown[next].dropOrder) {
			next = i
		}
	}
	return next
}

// healthOf returns a machine's health in a word, and since when.
func (v view) healthOf(m *Machine, o tableOptions) string {
	_, as := health(m.Health())
	word := stateOf(m)
	since := m.since()
	switch {
	case since.IsZero() || since.After(v.Now):
	case o.Wide:
		word += " since " + term.Second(since)
	default:
		word += " " + term.Span(v.Now.Sub(since))
	}
	return v.Paint.Text(as, word)
}

// nodeOf returns the name of a machine's Node, or "same" if it is the name of the machine.
func nodeOf(m *Machine) string {
	if m.Node == m.Name {
		return "same"
	}
	return cmp.Or(m.Node, "-")
}

// stateOf returns the state of a machine according to scute or a health check, and otherwise its phase in Cluster API.
func stateOf(m *Machine) string {
	switch h := m.Health(); {
	case h == Deleting:
		return "Deleting"
	case m.Mark != nil && m.Mark.State == "Failing":
		return "Failing"
	case h == Unhealthy:
		return "Unhealthy"
	case h == Degraded && m.NodeReady != object.True:
		return "NotReady"
	case h == Degraded:
		return "Degraded"
	case h == Healthy:
		return "Healthy"
	default:
		return cmp.Or(m.Phase, "Pending")
	}
}

// memberOf returns the state of a machine's etcd member: silent if scute got no response, and otherwise Cluster API's condition.
func (v view) memberOf(m *Machine) string {
	if m.Silent {
		return v.Paint.Text(term.Red, "silent")
	}
	role := ""
	switch {
	case m.IsLeader:
		role = " leader"
	case m.IsLearner:
		role = " learner"
	}
	switch m.Etcd {
	case object.True:
		return v.Paint.Text(term.Green, "healthy") + role
	case object.False:
		return v.Paint.Text(term.Red, "unhealthy") + role
	case object.Unknown:
		return v.Paint.Text(term.Yellow, "unknown") + role
	default:
		return cmp.Or(strings.TrimSpace(role), "-")
	}
}

func (v view) decisionOf(m *Machine) string {
	r := m.Remediation
	if r == nil || r.Decision == "" && r.Phase == "" {
		return ""
	}
	out := cmp.Or(r.Decision, string(r.Phase))
	if r.Outlook != nil && r.Outlook.Rule != "" {
		out += ", rule " + r.Outlook.Rule
	}
	if r.Attempts > 1 {
		out += fmt.Sprintf(", attempt %d", r.Attempts)
	}
	return v.EachWord(remediation.Style(r.Phase), out)
}

// nextOf returns what happens next, and until when. Without the log it returns the message of the resource, which describes the present.
func (v view) nextOf(m *Machine, o tableOptions) string {
	r := m.Remediation
	switch {
	case r == nil:
		return ""
	case r.Outlook == nil:
		return term.Clean(r.Message)
	}
	out := term.Clean(r.Outlook.Next)
	if until := r.Outlook.Until; !until.IsZero() {
		out += "; until " + v.formatTime(until, o.Wide)
		if r.Outlook.Then != "" {
			out += ", then " + r.Outlook.Then
		}
	}
	return out
}

// formatTime formats a future time: "14:31:00Z, in 4m".
func (v view) formatTime(t time.Time, exact bool) string {
	left := t.Sub(v.Now)
	switch {
	case exact:
		return term.Second(t)
	case left <= 0:
		return t.UTC().Format("15:04:05Z07:00") + ", which is now"
	default:
		return t.UTC().Format("15:04:05Z07:00") + ", in " + term.Span(left)
	}
}

// reasonLines returns the lines that explain why a machine is not healthy.
func (v view) reasonLines(m *Machine, indent string) []string {
	text := ""
	switch {
	case m.Mark != nil:
		text = m.Mark.Reason
		if m.Mark.Source != "" {
			text += ", reported by " + m.Mark.Source
		}
	case m.HealthCheck == object.False:
		text = cmp.Or(m.HealthCheckMessage, "a MachineHealthCheck reports it unhealthy")
	case (m.Etcd == object.False || m.Etcd == object.Unknown) && m.EtcdMessage != "" && !m.Deleting:
		text = m.EtcdMessage
	case m.Health() == Degraded && m.NodeReady == object.True:
		text = brokenPods(m)
	}
	if text == "" {
		return nil
	}
	return v.renderBelow(indent, "why", term.Clean(text), term.Plain)
}

func brokenPods(m *Machine) string {
	names := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}
	var out []string
	for i, pod := range m.Pods {
		if i < len(names) && (pod == object.False || pod == object.Unknown) {
			out = append(out, names[i])
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "not healthy: " + strings.Join(out, ", ")
}

// remedyLines returns the lines about what a user can do about a machine.
func (v view) remedyLines(m *Machine, indent string) []string {
	if m.Remediation == nil || m.Remediation.Next == "" {
		return nil
	}
	return v.renderBelow(indent, "do", term.Clean(m.Remediation.Next), term.Yellow)
}

// factOf returns the state of a machine in one line, for a pipe. Equal lines mean that nothing has changed.
func (v view) factOf(m *Machine) string { return v.fact(stateOf(m), m) }

func (v view) fact(state string, m *Machine) string {
	plain := view{show.View{Now: v.Now}}
	parts := []string{state}
	if m.Mark != nil && m.Mark.Reason != "" {
		parts[0] += " (" + m.Mark.Reason + ")"
	}
	if marks := m.stateNotes(); len(marks) > 0 {
		parts = append(parts, "marks "+strings.Join(marks, ","))
	}
	if r := m.Remediation; r != nil {
		decision := plain.decisionOf(m)
		if remediation.InProgress(r.Phase) {
			decision = string(r.Phase) + " by " + decision
		}
		for _, part := range []string{decision, "next: " + plain.nextOf(m, tableOptions{Wide: true})} {
			if part != "" && part != "next: " {
				parts = append(parts, part)
			}
		}
	}
	return term.Clean(strings.Join(parts, "; "))
}
