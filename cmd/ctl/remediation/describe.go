package remediation

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// describe returns the description of a remediation without the facts that only the log contains.
func (v output) describe(r *v1alpha1.SurgeRemediation) []string {
	s, log, abort := r.Status, "", ""
	if owner, ok := ownerOf(s.RemediationID); ok {
		log = owner.String()
	}
	if r.Spec.Abort {
		abort = "requested"
	}
	return slices.Concat(
		[]string{v.Field("Machine", v.Paint.Text(cli.Bold, r.Namespace+"/"+r.Name))},
		v.Wrapped("Owner", s.Owner, cli.Plain), v.Wrapped("Cluster", s.Cluster, cli.Plain), v.Wrapped("Policy", s.Policy, cli.Plain), v.Wrapped("In the log", log, cli.Plain),
		v.Wrapped("Hold", v.hold(r.Spec.Hold), cli.Yellow), v.Wrapped("Abort", abort, cli.Yellow), []string{""}, v.statusLines(r))
}

func (v output) hold(h *v1alpha1.RemediationHold) string {
	if h == nil {
		return ""
	}
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

// historyLines renders the facts that only the log contains: how the machine was marked as
// unhealthy, the decision, and its evidence.
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

// factOf returns the state of a remediation in one line, for a pipe. If two lines are equal,
// nothing has changed.
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
