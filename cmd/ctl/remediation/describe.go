package remediation

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// describe renders a remediation without the facts that only the log contains.
func (v output) describe(r *v1alpha1.SurgeRemediation) []string {
	s := r.Status
	out := []string{v.Field("Machine", v.Paint.Text(cli.Bold, r.Namespace+"/"+r.Name))}
	for _, f := range []struct{ name, value string }{{"Owner", s.Owner}, {"Cluster", s.Cluster}, {"Policy", s.Policy}} {
		if f.value != "" {
			out = append(out, v.Field(f.name, f.value))
		}
	}
	if owner, ok := ownerOf(s.RemediationID); ok {
		out = append(out, v.Field("In the log", owner.String()))
	}
	if r.Spec.Hold != nil {
		out = append(out, v.Wrapped("Hold", v.hold(r.Spec.Hold), cli.Yellow)...)
	}
	if r.Spec.Abort {
		out = append(out, v.Wrapped("Abort", "requested", cli.Yellow)...)
	}
	return append(append(out, ""), v.statusLines(r)...)
}

func (v output) hold(h *v1alpha1.RemediationHold) string {
	out := "until it is released"
	if h.Until != nil {
		out = "until " + cli.Second(h.Until.Time)
		if left := h.Until.Sub(v.Now); left > 0 {
			out += ", " + cli.Span(left) + " from now"
		} else {
			out += ", which has passed"
		}
	}
	if h.Reason != "" {
		out += ": " + h.Reason
	}
	return out
}

func (v output) conditions(list []metav1.Condition) []string {
	t := &cli.Table{Header: []string{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}, Wrap: 1}
	for i := range list {
		c := &list[i]
		t.Add(c.Type, string(c.Status), v.Age(&c.LastTransitionTime), c.Reason, cli.Clean(c.Message))
	}
	return v.Section("Conditions", t)
}

// historyLines renders the facts that only the log contains: the mark with its source, the decision with its rule, and the evidence.
func (v output) historyLines(f *Fold, machine string) (out []string) {
	if m := f.mark(machine); m.State != "" {
		out = v.Wrapped("Mark", fmt.Sprintf("%s since %s (%s), reported by %s: %s", m.State, cli.Ago(v.Now, m.Since), cli.Second(m.Since), m.Source, m.Reason), cli.Plain)
	}
	if d, seen, _ := f.LastDecision(machine); d.Verdict != "" {
		out = append(out, v.Wrapped("Decided", d.Words()+" by rule "+d.Rule+": "+d.Reason, cli.Plain)...)
		out = append(out, v.Wrapped("Observed", seen.Text(), cli.Plain)...)
	}
	return out
}

// factOf returns the state of a remediation in one line, for a pipe. Equal lines mean that nothing has changed.
func factOf(r *v1alpha1.SurgeRemediation) string {
	s := r.Status
	phase, quorum := string(cmp.Or(s.Phase, "Pending")), ""
	if s.Decision != "" {
		phase += " (" + s.Decision + ")"
	}
	if q := s.Quorum; q != nil && !q.External {
		quorum = fmt.Sprintf("; %d of %d voters answer, %s", q.Responding, q.Voters, kit.ToleranceText(q.Tolerates))
	}
	return kit.StatusLine(phase, s.Message, quorum, s.Next)
}
