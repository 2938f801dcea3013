package remediation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

func (o *options) show(p *snapshot) error {
	var err error
	switch text, _ := o.format.Text(); {
	case !text:
		err = o.format.Print(o.Env.Out, map[string]any{"machines": p.machines, "log": p.log})
	case o.describe:
		err = o.Print(describeMachine(o.View(), p.machines[0]))
	case len(p.machines) == 0:
		o.Env.Notef("There are no machines.")
	default:
		err = o.Print(o.table(o.View(), p.machines))
	}
	o.notes(p)
	return err
}

// notes prints which data are missing in the snapshot.
func (o *options) notes(p *snapshot) {
	if len(p.forbidden) > 0 {
		o.Env.Notef("You may not list %s: their data is missing above.", strings.Join(p.forbidden, ", "))
	}
	if p.log.Error != "" {
		o.Env.Notef("The log could not be read, so only the objects are shown; rules and times are missing: %s", p.log.Error)
	}
}

// table renders a row for each machine. It only counts running workers without a mark, unless the user named them or --all is set.
func (o *options) table(v kit.View, list []*machine) []string {
	_, wide := o.format.Text()
	header, left := []string{"CLUSTER", "MACHINE", "HEALTH", "MARKS", "DECISION", "NEXT"}, 0
	t := &cli.Table{Wrap: 2}
	if wide {
		header = append(header, "WHY", "DO", "OWNER")
		t.Wrap += 3
	}
	if o.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	t.Header = header
	for _, m := range list {
		if !o.all && len(o.names) == 0 && !m.controlPlane && m.Health == running && len(m.Marks) == 0 && m.Remediation == nil {
			left++
			continue
		}
		row := []string{
			m.Cluster, m.Name, v.Paint.Text(style(m.Health), m.health(v.Now)), cmp.Or(strings.Join(m.Marks, ","), "-"),
			v.EachWord(m.style(), m.decision()), m.next(v.Now),
		}
		if wide {
			row = append(row, cli.Clean(m.Reason), m.remedy(), m.Owner)
		}
		if o.allNamespaces {
			row = append([]string{m.Namespace}, row...)
		}
		t.Add(row...)
	}
	lines := t.Lines(v.Paint, v.Width)
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %s: --all lists them", view.Count(left, "running worker")))
	}
	return lines
}

// describeMachine renders one machine.
func describeMachine(v kit.View, m *machine) []string {
	out := []string{
		v.Field("Machine", v.Paint.Text(cli.Bold, m.Namespace+"/"+m.Name)), v.Field("Cluster", m.Cluster), v.Field("Owner", cmp.Or(m.Owner, "none")),
		v.Field("Health", v.Paint.Text(style(m.Health), m.health(v.Now))),
	}
	for _, f := range []struct {
		name, text string
		as         cli.Style
	}{
		{"Because", m.Reason, cli.Plain},
		{"Marks", strings.Join(m.Marks, ", "), cli.Plain},
		{"Decision", m.decision(), m.style()},
		{"Next", m.next(v.Now), cli.Plain},
		{"To do", m.remedy(), cli.Yellow},
	} {
		if f.text != "" {
			out = append(out, v.Wrapped(f.name, f.text, f.as)...)
		}
	}
	return out
}

// style returns the color of a health.
func style(health string) cli.Style {
	switch health {
	case unhealthy:
		return cli.Red
	case failing, deleting, deleted:
		return cli.Yellow
	case running:
		return cli.Green
	default:
		return cli.Cyan
	}
}

// style returns the color of the machine's decision.
func (m *machine) style() cli.Style {
	if m.Remediation == nil {
		return cli.Plain
	}
	return phaseStyle(m.Remediation.Phase)
}

// health returns a machine's health in a word, and for how long.
func (m *machine) health(now time.Time) string {
	if m.Since.IsZero() || m.Since.After(now) {
		return m.Health
	}
	return m.Health + " " + cli.Span(now.Sub(m.Since))
}

func (m *machine) decision() string {
	r := m.Remediation
	if r == nil {
		return ""
	}
	out := cmp.Or(r.Decision, string(r.Phase))
	if r.Outlook != nil && r.Outlook.Rule != "" {
		out += ", rule " + r.Outlook.Rule
	}
	if r.Attempts > 1 {
		out += fmt.Sprintf(", attempt %d", r.Attempts)
	}
	return out
}

// next returns what happens next and when, with the remaining time unless now is zero. Without the
// log it returns the message of the resource, which describes the present.
func (m *machine) next(now time.Time) string {
	r := m.Remediation
	switch {
	case r == nil:
		return ""
	case r.Outlook == nil:
		return cli.Clean(r.Message)
	}
	out := cli.Clean(r.Outlook.Next)
	if until := r.Outlook.Until; !until.IsZero() {
		out += "; until " + cli.Second(until)
		if left := until.Sub(now); !now.IsZero() && left > 0 {
			out += ", in " + cli.Span(left)
		}
		if r.Outlook.Then != "" {
			out += ", then " + r.Outlook.Then
		}
	}
	return out
}

// remedy returns what a user can do about a machine.
func (m *machine) remedy() string {
	if m.Remediation == nil {
		return ""
	}
	return cli.Clean(m.Remediation.Next)
}

// fact returns the state of a machine in one line, for a pipe. Equal lines mean that nothing has changed, so it contains no ages.
func (m *machine) fact() string {
	parts := []string{m.Health}
	if m.Reason != "" {
		parts[0] += " (" + m.Reason + ")"
	}
	if len(m.Marks) > 0 {
		parts = append(parts, "marks "+strings.Join(m.Marks, ","))
	}
	if r := m.Remediation; r != nil {
		decision := m.decision()
		if inProgress(r.Phase) {
			decision = string(r.Phase) + " by " + decision
		}
		parts = append(parts, decision)
		if next := m.next(time.Time{}); next != "" {
			parts = append(parts, "next: "+next)
		}
	}
	return cli.Clean(strings.Join(parts, "; "))
}

// pollInterval is the interval at which a watch reads the machines.
const pollInterval = 2 * time.Second

// follow reads and shows the machines repeatedly until it is interrupted: on a terminal in place of the previous ones, otherwise only the changes.
func (o *options) follow(ctx context.Context, r *reader) error {
	interrupted := cli.Interrupted(errors.New("interrupted: operations in progress continue"))
	screen, told := o.Screen(o.Env.Out), make(map[string]string)
	for first := true; ; first = false {
		p, err := r.read(ctx)
		switch {
		case ctx.Err() != nil:
			return interrupted
		case err != nil && first:
			return err
		case err != nil:
			o.ReportBroken(err)
		default:
			if first {
				o.notes(p)
			}
			if o.Env.CanRedraw(o.Env.Out) {
				err = screen.Draw(o.table(o.View(), p.machines))
			} else {
				err = o.Print(o.changedLines(p.machines, told))
			}
			if err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return interrupted
		case <-time.After(pollInterval):
		}
	}
}

// changedLines returns the lines that have changed since the previous snapshots, and records them in told.
func (o *options) changedLines(list []*machine, told map[string]string) (out []string) {
	const gone = "deleted"
	facts := make(map[string]string)
	for name := range told {
		facts[name] = gone
	}
	for _, m := range list {
		facts[m.Namespace+"/"+m.Name] = m.fact()
	}
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if told[name] != facts[name] {
			out = append(out, fmt.Sprintf("%s %s %s", cli.Exact(o.Env.Now()), name, facts[name]))
		}
		if told[name] = facts[name]; facts[name] == gone {
			delete(told, name)
		}
	}
	return out
}
