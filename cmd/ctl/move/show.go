package move

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

func status(m *v1alpha1.Move) kit.Status {
	s := m.Status
	return kit.Status{
		Phase: string(s.Phase), ID: s.MoveID, Since: s.PhaseSince, Started: s.StartedAt, Finished: s.FinishedAt, Message: s.Message, Next: s.Next,
		Conditions: s.Conditions, Details: details(m),
	}
}

func phase(m *v1alpha1.Move) string { return string(cmp.Or(m.Status.Phase, mover.PhasePending)) }

func details(m *v1alpha1.Move) kit.Details {
	d := kit.Details{Fields: []kit.Field{{Name: "Moves", Value: selection(m)}, {Name: "Target", Value: target(m)}}, Stages: stages(m), Counts: counts(m), Tables: tables(m)}
	if options := options(m); options != "" {
		d.Fields = append(d.Fields, kit.Field{Name: "Options", Value: options})
	}
	return d
}

// counts returns those counts that have a meaning in the present phase.
func counts(m *v1alpha1.Move) []kit.Count {
	c := m.Status.Counts
	list := []kit.Count{
		{Name: "Acknowledged", Done: c.Acknowledged, Of: c.Acknowledged},
		{Name: "Created", Done: c.Created, Of: c.Objects},
		{Name: "Deleted", Done: c.Deleted, Of: c.ToDelete},
		{Name: "Resumed", Done: c.Resumed, Of: c.ToResume},
	}
	switch {
	case m.Spec.DryRun:
		return nil
	case c.ToDelete == 0: // there is no plan yet: Objects counts the objects that must acknowledge
		list = []kit.Count{{Name: "Acknowledged", Done: c.Acknowledged, Of: c.Objects}}
	}
	return slices.DeleteFunc(list, func(c kit.Count) bool { return c.Of == 0 })
}

func tables(m *v1alpha1.Move) []kit.Table {
	s := m.Status
	objects := func(title string, list []v1alpha1.MoveWaiting) kit.Table {
		t := kit.Table{Title: title, Header: []string{"Object", "Why"}, Wrap: 2}
		for _, w := range list {
			t.Rows = append(t.Rows, []string{w.Object, w.Message})
		}
		return t
	}
	findings := kit.Table{Title: "Findings", Header: []string{"Severity", "Field", "Finding", "Remedy"}, Wrap: 3}
	for _, f := range s.Findings {
		findings.Rows = append(findings.Rows, []string{f.Severity, f.Field, f.Message, f.Remedy})
	}
	out := []kit.Table{findings, objects("Not moved", s.NotMoved)}
	if !finished(m) {
		out = slices.Insert(out, 0, objects("Waiting for", s.WaitingFor))
	}
	return out
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

func row(v kit.View, m *v1alpha1.Move) kit.Row {
	c := m.Status.Counts
	return kit.Row{
		Cells: []string{
			m.Name, v.Word(phase(m)), v.Age(m.Status.PhaseSince), fmt.Sprint(c.Clusters),
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

// fact returns the state of a Move as a line for a pipe. If two lines are equal, nothing relevant
// has changed.
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
	return kit.StatusLine(phase(m), s.Message, line, s.Next)
}

const namedInLine = 3
