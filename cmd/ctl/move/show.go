package move

import (
	"cmp"
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

// output shows moves.
type output struct{ kit.View }

// Describe returns the description of a Move without its timeline.
func Describe(of kit.View, m *v1alpha1.Move) []string {
	v := output{of}
	out := append(v.Head("Move", m.Namespace, m.Name, "move", m.Status.MoveID), v.Field("Moves", selection(m)), v.Field("Target", target(m)))
	if options := options(m); options != "" {
		out = append(out, v.Field("Options", options))
	}
	out = append(out, "")
	out = append(out, v.statusLines(m)...)
	return append(out, v.lists(m)...)
}

// statusLines returns the state of a Move: the part of a description that changes.
func (v output) statusLines(m *v1alpha1.Move) []string {
	s := m.Status
	out := []string{v.Phase(v.phase(m), s.PhaseSince, s.FinishedAt), v.Field("", v.bar(m))}
	out = append(out, v.Times(s.StartedAt, s.FinishedAt, cli.Span)...)
	out = append(out, v.progress(m)...)
	out = append(out, v.Untrusted(s.Conditions)...)
	return append(out, v.Outlook(s.FinishedAt != nil, s.Phase == "", s.Message, s.Next)...)
}

// progress returns a line for each count that is meaningful in the present phase.
func (v output) progress(m *v1alpha1.Move) []string {
	c := m.Status.Counts
	if m.Spec.DryRun {
		return nil
	}
	var out []string
	add := func(name string, done, total int) {
		if total == 0 {
			return
		}
		as := cli.Cyan
		if done >= total {
			as = cli.Green
		}
		out = append(out, v.Field(name, v.Bar(as, done, total)))
	}
	if c.ToDelete == 0 { // no plan yet: Objects counts the objects that must acknowledge
		add("Acknowledged", c.Acknowledged, c.Objects)
		return out
	}
	add("Acknowledged", c.Acknowledged, c.Acknowledged)
	add("Created", c.Created, c.Objects)
	add("Deleted", c.Deleted, c.ToDelete)
	add("Resumed", c.Resumed, c.ToResume)
	return out
}

// lists returns the objects that the move waits for, the findings, and the objects that stay at the source.
func (v output) lists(m *v1alpha1.Move) []string {
	s := m.Status
	var out []string
	if !finished(m) {
		out = append(out, v.list("Waiting for", s.WaitingFor)...)
	}
	out = append(out, v.findings(s.Findings)...)
	return append(out, v.list("Not moved", s.NotMoved)...)
}

func (v output) list(title string, list []v1alpha1.MoveWaiting) []string {
	t := &cli.Table{Header: []string{"OBJECT", "WHY"}, Wrap: 2}
	for _, w := range list {
		t.Add(w.Object, cli.Clean(w.Message))
	}
	return v.Section(title, t)
}

// findings returns the result of the preflight, with a remedy for each finding.
func (v output) findings(list []v1alpha1.MoveFinding) []string {
	t := &cli.Table{Header: []string{"SEVERITY", "FIELD", "FINDING", "REMEDY"}, Wrap: 3}
	for _, f := range list {
		as := cli.Yellow
		if f.Severity == string(mover.Error) {
			as = cli.Red
		}
		t.Add(v.Paint.Text(as, f.Severity), f.Field, cli.Clean(f.Message), cli.Clean(f.Remedy))
	}
	return v.Section("Findings", t)
}

func selection(m *v1alpha1.Move) string {
	if m.Spec.Selection.All {
		return "all clusters of namespace " + m.Namespace
	}
	return "clusters " + strings.Join(m.Spec.Selection.Clusters, ", ")
}

func target(m *v1alpha1.Move) string {
	ref := m.Spec.Target.KubeconfigSecretRef
	return fmt.Sprintf("the kubeconfig in Secret %s, key %s", ref.Name, ref.Key)
}

func options(m *v1alpha1.Move) string {
	var out []string
	if m.Spec.DryRun {
		out = append(out, "dry run: nothing is changed")
	}
	if r := m.Spec.RollbackOnFailure; r != nil && !*r {
		out = append(out, "no rollback on failure")
	}
	if len(m.Spec.CarryStatus) > 0 {
		out = append(out, "status carried of "+strings.Join(m.Spec.CarryStatus, ", "))
	}
	if len(m.Spec.AcceptLoss) > 0 {
		out = append(out, "loss accepted of "+strings.Join(m.Spec.AcceptLoss, ", "))
	}
	if m.Spec.Abort {
		out = append(out, "abort requested")
	}
	return strings.Join(out, "; ")
}

// row returns a Move as a row of a table; the message is wide.
func row(of kit.View, m *v1alpha1.Move) kit.Row {
	v, c := output{of}, m.Status.Counts
	return kit.Row{
		Cells: []string{
			m.Name, v.phase(m), v.Age(m.Status.PhaseSince), fmt.Sprint(c.Clusters),
			count(c.Created, c.Objects, m), count(c.Deleted, c.ToDelete, m), count(c.Resumed, c.ToResume, m), v.Age(&m.CreationTimestamp),
		},
		Wide: []string{cli.Clean(m.Status.Message)},
	}
}

// count returns "done/total", or "-" if there is no plan or the move is a dry run.
func count(done, total int, m *v1alpha1.Move) string {
	if m.Spec.DryRun || m.Status.Counts.ToDelete == 0 || total == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", done, total)
}

// fact returns the state of a Move as a line for a pipe. It is equal for two states without a relevant change.
func fact(m *v1alpha1.Move) string {
	s, line := m.Status, ""
	if len(s.WaitingFor) > 0 {
		parts := make([]string, 0, namedInLine)
		for _, w := range s.WaitingFor[:min(len(s.WaitingFor), namedInLine)] {
			parts = append(parts, w.Object+" ("+w.Message+")")
		}
		line = "; waits for " + strings.Join(parts, ", ")
		if more := len(s.WaitingFor) - namedInLine; more > 0 {
			line += fmt.Sprintf(" and %d more", more)
		}
	}
	return kit.StatusLine(string(cmp.Or(s.Phase, mover.PhasePending)), s.Message, line, s.Next)
}

const namedInLine = 3
