package remediation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

func machineRow(v kit.View, m *machine) kit.Row {
	return kit.Row{
		Cells: []string{
			m.Cluster, m.Name, v.Paint.Text(style(m.Health), m.health(v.Now)), cmp.Or(strings.Join(m.Marks, ","), "-"),
			v.EachWord(m.style(), m.decision()), m.next(v.Now),
		},
		Wide: []string{cli.Clean(m.Reason), m.remedy(), m.Owner},
	}
}

func describeMachine(v kit.View, m *machine) []string {
	return slices.Concat(
		[]string{v.Field("Machine", v.Paint.Text(cli.Bold, m.Namespace+"/"+m.Name)), v.Field("Cluster", m.Cluster), v.Field("Owner", cmp.Or(m.Owner, "none"))},
		v.Wrapped("Health", m.health(v.Now), style(m.Health)), v.Wrapped("Because", m.Reason, cli.Plain), v.Wrapped("Marks", strings.Join(m.Marks, ", "), cli.Plain),
		v.Wrapped("Decision", m.decision(), m.style()), v.Wrapped("Next", m.next(v.Now), cli.Plain), v.Wrapped("To do", m.remedy(), cli.Yellow))
}

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

func (m *machine) style() cli.Style {
	if m.Remediation == nil {
		return cli.Plain
	}
	return kit.ToneOf(string(m.Remediation.Phase)).Style()
}

// health returns the health of a machine in one word, and how long it has had it.
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

// next returns what happens next and when. Unless now is zero, it includes the remaining time. If
// the log was not read, it returns the message of the resource, which describes the present.
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

func (m *machine) remedy() string {
	if m.Remediation == nil {
		return ""
	}
	return cli.Clean(m.Remediation.Next)
}

// fact returns the state of a machine in one line. The line contains no ages, so that equal lines
// mean that nothing has changed.
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
