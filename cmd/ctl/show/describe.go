package show

import (
	"fmt"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/moves"
	"scute.dev/cmd/ctl/term"
	"scute.dev/mover"
)

// Describe is all there is to say about a Move but its timeline.
func (v View) Describe(m *v1alpha1.Move) []string {
	s := m.Status
	out := []string{v.Field("Move", v.Paint.Text(term.Bold, m.Namespace+"/"+m.Name))}
	if s.MoveID != "" {
		out = append(out, v.Field("In the log", "move/"+s.MoveID))
	}
	out = append(out, v.Field("Moves", selection(m)), v.Field("Target", target(m)))
	if options := options(m); options != "" {
		out = append(out, v.Field("Options", options))
	}
	out = append(out, "")
	out = append(out, v.Standing(m)...)
	return append(out, v.Lists(m)...)
}

// Standing prints the state of a Move: the part of a description that changes.
func (v View) Standing(m *v1alpha1.Move) []string {
	s := m.Status
	phase := v.Phase(m)
	if s.PhaseSince != nil && s.FinishedAt == nil {
		phase += " for " + v.Age(s.PhaseSince) + v.Paint.Text(term.Dim, " (since "+term.Second(s.PhaseSince.Time)+")")
	}
	out := []string{v.Field("Phase", phase), v.Field("", v.PhaseBar(m))}
	if s.StartedAt != nil {
		out = append(out, v.Field("Started", v.At(s.StartedAt)))
	}
	if s.FinishedAt != nil {
		took := ""
		if s.StartedAt != nil {
			took = ", after " + term.Span(s.FinishedAt.Sub(s.StartedAt.Time))
		}
		out = append(out, v.Field("Ended", v.At(s.FinishedAt)+took))
	}
	out = append(out, v.progress(m)...)
	if s.Message != "" {
		name := "Now"
		if s.FinishedAt != nil {
			name = "Outcome"
		}
		out = append(out, v.Wrapped(name, s.Message, term.Plain)...)
	}
	if s.Phase == "" {
		out = append(out, v.Wrapped("Now", "no daemon has taken note of it yet", term.Plain)...)
	}
	if s.Next != "" {
		out = append(out, v.Wrapped("Next", s.Next, term.Yellow)...)
	}
	return out
}

// progress is a line for each count that means something by now.
func (v View) progress(m *v1alpha1.Move) []string {
	c := m.Status.Counts
	if m.Spec.DryRun {
		return nil
	}
	var out []string
	add := func(name string, done, total int) {
		if total == 0 {
			return
		}
		as := term.Cyan
		if done >= total {
			as = term.Green
		}
		out = append(out, v.Field(name, v.Bar(as, done, total)))
	}
	if c.ToDelete == 0 { // no plan yet: what is counted is who must acknowledge
		add("Acknowledged", c.Acknowledged, c.Objects)
		return out
	}
	add("Acknowledged", c.Acknowledged, c.Acknowledged)
	add("Created", c.Created, c.Objects)
	add("Deleted", c.Deleted, c.ToDelete)
	add("Awake", c.Awake, c.ToAwake)
	return out
}

// Lists are what is waited for, the findings, and what stays behind.
func (v View) Lists(m *v1alpha1.Move) []string {
	s := m.Status
	var out []string
	if !moves.Over(m) {
		out = append(out, v.list("Waiting for", s.WaitingFor)...)
	}
	out = append(out, v.Findings(s.Findings)...)
	return append(out, v.list("Not moved", s.NotMoved)...)
}

func (v View) list(title string, list []v1alpha1.MoveWaiting) []string {
	if len(list) == 0 {
		return nil
	}
	t := term.Table{Header: []string{"OBJECT", "WHY"}, Wrap: 2, Indent: "  "}
	for _, w := range list {
		t.Add(w.Object, term.Clean(w.Why))
	}
	return append([]string{"", title + ":"}, t.Lines(v.Paint, v.Width)...)
}

// Findings is the preflight's answer, with what to do about each.
func (v View) Findings(list []v1alpha1.MoveFinding) []string {
	if len(list) == 0 {
		return nil
	}
	t := term.Table{Header: []string{"SEVERITY", "FIELD", "FINDING", "REMEDY"}, Wrap: 3, Indent: "  "}
	for _, f := range list {
		as := term.Yellow
		if f.Severity == string(mover.Error) {
			as = term.Red
		}
		t.Add(v.Paint.Text(as, f.Severity), f.Field, term.Clean(f.Message), term.Clean(f.Remedy))
	}
	return append([]string{"", "Findings:"}, t.Lines(v.Paint, v.Width)...)
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
	if m.Spec.Abort {
		out = append(out, "an abort is asked for")
	}
	return strings.Join(out, "; ")
}
