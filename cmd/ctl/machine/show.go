package machine

import (
	"fmt"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/kube/object"
)

type view struct{ show.View }

// health returns the glyph of a health, and its color.
func health(h Health) (string, term.Style) {
	switch h {
	case Unhealthy:
		return "✗", term.Red
	case Degraded:
		return "!", term.Yellow
	case Starting:
		return "▶", term.Cyan
	case Deleting:
		return "◀", term.Yellow
	default:
		return "✓", term.Green
	}
}

// truth returns the glyph of a condition's status.
func (v view) truth(t object.ConditionStatus) string {
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

// clusters renders a tree for each cluster: the owners of its machines, etcd's quorum, and the machines.
func (v view) clusters(list []*Cluster, o tableOptions) []string {
	var out []string
	for i, c := range list {
		if i > 0 {
			out = append(out, "")
		}
		out = append(out, v.fit(v.Paint.Text(term.Bold, c.Namespace+"/"+c.Name)+v.notes(c.Paused, c.Deleting)))
		for n, owner := range c.Owners {
			fork, below := "├ ", "│ "
			if n == len(c.Owners)-1 {
				fork, below = "└ ", "  "
			}
			out = append(out, v.owner(owner, fork, below, o)...)
		}
		if len(c.Owners) == 0 {
			out = append(out, "└ no control plane and no machines")
		}
	}
	return out
}

// tableOptions select how much of the machines is shown.
type tableOptions struct {
	// Served means that scute's kinds were read.
	Served bool
	// All shows healthy workers too.
	All bool
	// Wide adds nodes, versions and components, and shows exact times.
	Wide bool
}

func (v view) notes(paused, deleting bool) string {
	out := ""
	if paused {
		out += v.Paint.Text(term.Yellow, "  paused")
	}
	if deleting {
		out += v.Paint.Text(term.Yellow, "  being deleted")
	}
	return out
}

// fit truncates a line to the width of the terminal. It does not truncate lines for a pipe.
func (v view) fit(line string) string { return term.Fit(strings.TrimRight(line, " "), v.Width) }

func (v view) owner(o *Owner, fork, below string, options tableOptions) []string {
	name := strings.TrimSpace(o.Kind + " " + o.Name)
	if name == "" {
		name = "machines without an owner"
	}
	wanted := "?"
	if o.Replicas != nil {
		wanted = fmt.Sprint(*o.Replicas)
	}
	head := fmt.Sprintf("%s%s  %d/%s ready", fork, name, o.ready, wanted)
	switch {
	case o.Running != "" && o.Version != "":
		head += "  " + o.Running + " → " + o.Version
	case o.Version != "":
		head += "  " + o.Version
	}
	out := []string{v.fit(head + v.notes(o.Paused, false))}
	shown, healthy := o.Machines, 0
	if !o.ControlPlane && !options.All {
		shown = slices.DeleteFunc(slices.Clone(o.Machines), func(m *Machine) bool { return m.Health() == Healthy && !m.needsAttention() })
		healthy = len(o.Machines) - len(shown)
	}
	if len(shown) == 0 && healthy > 0 && len(o.Gone) == 0 {
		return out
	}
	out = append(out, v.renderBelow(below+"  ", "policy", v.policy(o.Policy, options.Served), term.Plain)...)
	if o.ControlPlane {
		out = append(out, v.renderBelow(below+"  ", "etcd", v.etcd(o), term.Plain)...)
		out = append(out, v.databases(o, below+"  ")...)
	}
	for _, m := range o.Gone {
		out = append(out, v.renderBelow(below+"  ", "deleted", m.Name+", "+v.decisionOf(m)+": "+v.nextOf(m, options), term.Plain)...)
		out = append(out, v.remedyLines(m, below+"  ")...)
	}
	if len(shown) > 0 || len(o.Machines)+len(o.Gone) == 0 {
		out = append(out, v.machines(o, shown, below+"  ", options)...)
	}
	if healthy > 0 {
		out = append(out, v.fit(fmt.Sprintf("%s    and %d healthy", below, healthy)))
	}
	return out
}

// renderBelow renders text below another line, with a name before it. A text that is too long is wrapped.
func (v view) renderBelow(indent, name, text string, as term.Style) []string {
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

func (v view) policy(p *Policy, served bool) string {
	switch {
	case p == nil && !served:
		return v.EachWord(term.Dim, "none: scute's kinds are not served here, or you may not read them")
	case p == nil:
		return v.EachWord(term.Dim, "none: no RepairPolicy selects it, scute changes nothing")
	}
	out := p.Name
	if p.Unreadable != "" {
		out += " " + v.EachWord(term.Yellow, "(cannot be read, nothing is started: "+term.Clean(p.Unreadable)+")")
	}
	if p.DryRun {
		out += " " + v.EachWord(term.Yellow, "(dry run: nothing is changed)")
	}
	if len(p.PauseRequests) > 0 {
		out += " " + v.EachWord(term.Yellow, "(paused, nothing is started: "+term.Clean(strings.Join(p.PauseRequests, "; "))+")")
	}
	if p.MassFailure {
		out += " " + v.EachWord(term.Yellow, "(mass failure: nothing is started)")
	}
	return out
}

// databases renders etcd's databases if they were recorded, and below them the problems and their remedies.
func (v view) databases(o *Owner, indent string) []string {
	var sizes []string
	for _, d := range o.Databases {
		sizes = append(sizes, d.Node+" "+d.String())
	}
	var out []string
	if len(sizes) > 0 {
		out = v.renderBelow(indent, "size", term.Clean(strings.Join(sizes, "; ")), term.Plain)
	}
	for _, p := range o.Problems {
		out = append(out, v.renderBelow(indent, "!", v.EachWord(term.Red, term.Clean(p.Message)), term.Plain)...)
		out = append(out, v.renderBelow(indent, "do", term.Clean(p.Next), term.Yellow)...)
	}
	return out
}

// etcd renders the quorum as scute last observed it. If scute has not asked the members, it renders Cluster API's conditions.
func (v view) etcd(o *Owner) string {
	switch {
	case o.External:
		return v.Quorum(&v1alpha1.QuorumStatus{External: true})
	case o.Quorum != nil:
		out := v.Quorum(o.Quorum)
		if len(o.Silent) > 0 {
			out += "; silent: " + strings.Join(o.Silent, ", ")
		}
		if o.ProbedAt.IsZero() {
			return out + "; as last seen by scute"
		}
		return out + "; checked " + term.Ago(v.Now, o.ProbedAt)
	case o.Listed != nil:
		l := o.Listed
		dots := v.Paint.Text(term.Green, strings.Repeat("●", l.Healthy)) + v.Paint.Text(term.Red, strings.Repeat("○", l.Members-l.Healthy))
		left := l.Healthy - (l.Members/2 + 1)
		if slices.ContainsFunc(o.Problems, func(p v1alpha1.EtcdProblem) bool { return p.Problem.Alarm() }) { // because an alarm makes all members unhealthy
			return fmt.Sprintf("%s %d of %d members healthy according to Cluster API's conditions: etcd has an alarm", dots, l.Healthy, l.Members)
		}
		return fmt.Sprintf("%s %d of %d members healthy according to Cluster API's conditions; %s", dots, l.Healthy, l.Members, v.EachWord(show.Tolerance(left), show.ToleranceText(left)))
	default:
		return v.EachWord(term.Dim, "no members known yet")
	}
}
