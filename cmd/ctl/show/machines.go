package show

import (
	"cmp"
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/fleet"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/term"
	"scute.dev/kube/object"
)

// health of a machine as a glyph and its color.
func health(h fleet.Health) (string, term.Style) {
	switch h {
	case fleet.Unhealthy:
		return "✗", term.Red
	case fleet.Ailing:
		return "!", term.Yellow
	case fleet.Starting:
		return "▶", term.Cyan
	case fleet.Leaving:
		return "◀", term.Yellow
	default:
		return "✓", term.Green
	}
}

// truth of a condition as a glyph.
func (v View) truth(t object.Truth) string {
	switch t {
	case object.True:
		return v.Paint.Text(term.Green, "✓")
	case object.False:
		return v.Paint.Text(term.Red, "✗")
	case object.Unknown:
		return v.Paint.Text(term.Yellow, "?")
	default:
		return v.Paint.Text(term.Dim, "·")
	}
}

// Clusters are trees, one a cluster: its owners of machines, etcd's quorum, and the machines.
func (v View) Clusters(list []*fleet.Cluster, served bool) []string {
	var out []string
	for i, c := range list {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, v.fit(v.Paint.Text(term.Bold, c.Namespace+"/"+c.Name)+v.notes(c.Paused, c.Deleting)))
		for n, o := range c.Owners {
			fork, below := "├ ", "│ "
			if n == len(c.Owners)-1 {
				fork, below = "└ ", "  "
			}
			out = append(out, v.owner(o, fork, below, served)...)
		}
		if len(c.Owners) == 0 {
			out = append(out, "└ it has no control plane, and no machine")
		}
	}
	return out
}

func (v View) notes(paused, deleting bool) string {
	out := ""
	if paused {
		out += v.Paint.Text(term.Yellow, "  paused")
	}
	if deleting {
		out += v.Paint.Text(term.Yellow, "  being deleted")
	}
	return out
}

// fit cuts a line to the terminal; in a pipe nothing is cut.
func (v View) fit(line string) string { return term.Fit(strings.TrimRight(line, " "), v.Width) }

func (v View) owner(o *fleet.Owner, fork, below string, served bool) []string {
	name := strings.TrimSpace(o.Kind + " " + o.Name)
	if name == "" {
		name = "machines without an owner"
	}
	wanted := "?"
	if o.Replicas != nil {
		wanted = fmt.Sprint(*o.Replicas)
	}
	head := fmt.Sprintf("%s%s  %d of %s ready", fork, name, o.Ready(), wanted)
	if o.Version != "" {
		head += "  " + o.Version
	}
	out := []string{v.fit(head + v.notes(o.Paused, false))}
	out = append(out, v.under(below+"  ", "policy", v.policy(o.Policy, served), term.Plain)...)
	if o.ControlPlane {
		out = append(out, v.under(below+"  ", "etcd", v.etcd(o), term.Plain)...)
	}
	return append(out, v.machines(o, below+"  ")...)
}

// under is a line below another, with a name before it; where it is too long it is wrapped.
func (v View) under(indent, name, text string, as term.Style) []string {
	const column = 8
	width := 0
	if v.Width > 0 {
		width = max(20, v.Width-term.Width(indent)-column)
	}
	var out []string
	for i, line := range term.Wrap(text, width) {
		if i > 0 {
			name = ""
		}
		out = append(out, indent+v.Paint.Text(term.Dim, fmt.Sprintf("%-*s", column, name))+v.Paint.Text(as, line))
	}
	return out
}

func (v View) policy(p *fleet.Policy, served bool) string {
	switch {
	case p == nil && !served:
		return v.eachWord(term.Dim, "none: scute's kinds are not served here, or may not be read")
	case p == nil:
		return v.eachWord(term.Dim, "none: no RepairPolicy selects it, scute touches nothing")
	}
	out := p.Name
	if p.Unreadable != "" {
		out += " " + v.eachWord(term.Yellow, "(cannot be read, nothing is begun: "+term.Clean(p.Unreadable)+")")
	}
	if p.DryRun {
		out += " " + v.eachWord(term.Yellow, "(a dry run: nothing is touched)")
	}
	if len(p.PauseRequests) > 0 {
		out += " " + v.eachWord(term.Yellow, "(begins nothing: "+term.Clean(strings.Join(p.PauseRequests, "; "))+")")
	}
	if p.Storm {
		out += " " + v.eachWord(term.Yellow, "(in a storm: nothing is begun)")
	}
	return out
}

// etcd is a picture of quorum: as scute saw it, when it has asked the members, else as Cluster API's conditions say.
func (v View) etcd(o *fleet.Owner) string {
	switch {
	case o.External:
		return v.Quorum(&v1alpha1.QuorumStatus{External: true})
	case o.Quorum != nil:
		return v.Quorum(o.Quorum) + ", as scute saw it last"
	case o.Listed != nil:
		l := o.Listed
		dots := v.Paint.Text(term.Green, strings.Repeat("●", l.Healthy)) + v.Paint.Text(term.Red, strings.Repeat("○", l.Members-l.Healthy))
		left := l.Healthy - (l.Members/2 + 1)
		return fmt.Sprintf("%s %d of %d members healthy; %s, if all of them answer: nobody asked", dots, l.Healthy, l.Members, v.eachWord(tolerance(left), mayFail(left)))
	default:
		return v.eachWord(term.Dim, "no member is known yet")
	}
}

// machines are a row each; below one that is not well, why, and what was decided.
func (v View) machines(o *fleet.Owner, indent string) []string {
	if len(o.Machines) == 0 {
		return []string{indent + "no machine yet"}
	}
	t := term.Table{Header: []string{"  MACHINE", "NODE", "AGE", "READY", "STATE"}, Indent: indent}
	if o.ControlPlane {
		t.Header = []string{"  MACHINE", "NODE", "AGE", "READY", "ETCD", "PODS", "STATE"}
	}
	for _, m := range o.Machines {
		glyph, as := health(m.Health())
		row := []string{v.Paint.Text(as, glyph) + " " + m.Name, nodeOf(m), term.Span(v.Now.Sub(m.CreatedAt)), v.truth(m.NodeReady)}
		if o.ControlPlane {
			pods := ""
			for _, pod := range m.Pods {
				pods += v.truth(pod)
			}
			row = append(row, v.truth(m.Etcd), pods)
		}
		t.Add(append(row, v.Paint.Text(as, stateOf(m)))...)
	}
	lines := t.Lines(v.Paint, 0)
	out := []string{v.fit(lines[0])}
	for i, m := range o.Machines {
		out = append(out, v.fit(lines[i+1]))
		out = append(out, v.trouble(m, indent+"  ")...)
	}
	return out
}

// nodeOf leaves out a name that is the machine's own.
func nodeOf(m *fleet.Machine) string {
	if m.Node == m.Name {
		return "same"
	}
	return cmp.Or(m.Node, "-")
}

// stateOf a machine: what scute calls it, else what Cluster API does.
func stateOf(m *fleet.Machine) string {
	switch {
	case m.Deleting:
		return "Deleting"
	case m.Mark != nil:
		return m.Mark.State
	case m.HealthCheck == object.False:
		return "Unhealthy"
	default:
		return m.Phase
	}
}

// trouble is what there is to tell about a machine: the mark, what others wrote on it, and the remediation.
func (v View) trouble(m *fleet.Machine, indent string) []string {
	var out []string
	switch {
	case m.Mark != nil:
		why := m.Mark.Reason
		if !m.Mark.Since.IsZero() {
			why += fmt.Sprintf(", since %s (%s)", term.Span(v.Now.Sub(m.Mark.Since.Time)), term.Second(m.Mark.Since.Time))
		}
		if m.Mark.Source != "" {
			why += ", says " + m.Mark.Source
		}
		out = append(out, v.under(indent, "mark", term.Clean(why), term.Plain)...)
	case m.HealthCheck == object.False:
		out = append(out, v.under(indent, "check", term.Clean(cmp.Or(m.HealthCheckWhy, "a MachineHealthCheck calls it unhealthy")), term.Plain)...)
	}
	if len(m.Annotations) > 0 {
		out = append(out, v.under(indent, "bears", strings.Join(m.Annotations, ", "), term.Plain)...)
	}
	r := m.Remediation
	if r == nil {
		return out
	}
	what := v.RemediationPhase(r.Phase)
	if remediations.UnderWay(r.Phase) && r.Decision != "" {
		what += " by " + r.Decision
	}
	if r.Replacement != "" {
		what += " with " + r.Replacement
	}
	if r.Attempts > 1 {
		what += fmt.Sprintf(", attempt %d", r.Attempts)
	}
	if r.Message != "" {
		what += ": " + term.Clean(r.Message)
	}
	out = append(out, v.under(indent, "scute", what, term.Plain)...)
	if r.Next != "" {
		out = append(out, v.under(indent, "next", term.Clean(r.Next), term.Yellow)...)
	}
	return out
}
