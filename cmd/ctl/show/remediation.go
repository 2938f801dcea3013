package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/remediations"
	"scute.dev/cmd/ctl/term"
)

// remediationStyle of a phase.
func remediationStyle(p v1alpha1.RemediationPhase) term.Style {
	switch p {
	case v1alpha1.RemediationSucceeded, v1alpha1.RemediationRecovered:
		return term.Green
	case v1alpha1.RemediationFailed, v1alpha1.RemediationFrozen:
		return term.Red
	case v1alpha1.RemediationMarked, v1alpha1.RemediationWaiting, v1alpha1.RemediationHeld, v1alpha1.RemediationCancelling, v1alpha1.RemediationCancelled:
		return term.Yellow
	case v1alpha1.RemediationUnselected, "":
		return term.Dim
	default:
		return term.Cyan
	}
}

// RemediationPhase is a remediation's phase, colored; "Pending" for one that nobody has taken up.
func (v View) RemediationPhase(p v1alpha1.RemediationPhase) string {
	return v.Paint.Text(remediationStyle(p), string(cmp.Or(p, "Pending")))
}

// RemediationTable lists remediations, one a row; wide adds what is more than fits a terminal.
func (v View) RemediationTable(list []*v1alpha1.SurgeRemediation, namespaces, wide bool) []string {
	t := term.Table{Header: []string{"MACHINE", "PHASE", "DECISION", "REPLACEMENT", "ETCD", "AGE"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	if wide {
		t.Header = append(t.Header, "CLUSTER", "OWNER", "POLICY", "TRIES", "MESSAGE")
		t.Wrap = 1
	}
	for _, r := range list {
		s := r.Status
		row := []string{r.Name, v.RemediationPhase(s.Phase), cmp.Or(s.Decision, "-"), cmp.Or(s.Replacement, "-"), v.members(s.Quorum), v.Age(&r.CreationTimestamp)}
		if namespaces {
			row = append([]string{r.Namespace}, row...)
		}
		if wide {
			row = append(row, cmp.Or(s.Cluster, "-"), cmp.Or(s.Owner, "-"), cmp.Or(s.Policy, "-"), Tries(s.Attempts), term.Clean(s.Message))
		}
		t.Add(row...)
	}
	return t.Lines(v.Paint, v.Width)
}

// members is how many of etcd's answer, in a cell.
func (v View) members(q *v1alpha1.QuorumStatus) string {
	switch {
	case q == nil:
		return "-"
	case q.External:
		return "external"
	}
	return v.Paint.Text(tolerance(q.Tolerates), fmt.Sprintf("%d/%d", q.Answering, q.Voters))
}

func tolerance(tolerates int) term.Style {
	switch {
	case tolerates < 0:
		return term.Red
	case tolerates == 0:
		return term.Yellow
	default:
		return term.Green
	}
}

// Quorum is a picture of etcd's quorum in a line: who answers, and how many of them may still fail.
func (v View) Quorum(q *v1alpha1.QuorumStatus) string {
	if q.External {
		return "external: its members are not the control plane's, and not counted"
	}
	as := tolerance(q.Tolerates)
	dots := v.Paint.Text(term.Green, strings.Repeat("●", max(0, q.Answering))) + v.Paint.Text(term.Red, strings.Repeat("○", max(0, q.Voters-q.Answering)))
	return fmt.Sprintf("%s %d of %d voters answer; %s", dots, q.Answering, q.Voters, v.eachWord(as, mayFail(q.Tolerates)))
}

// eachWord colors a text that may be wrapped: no line is to take its color into the next.
func (v View) eachWord(as term.Style, s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = v.Paint.Text(as, w)
	}
	return strings.Join(words, " ")
}

func mayFail(tolerates int) string {
	switch {
	case tolerates < 0:
		return "quorum is lost"
	case tolerates == 0:
		return "none of them may fail"
	default:
		return fmt.Sprintf("%d may still fail", tolerates)
	}
}

// RemediationBar is one line with the phases on the way to a new machine. Where it does not fit, the names are left out.
func (v View) RemediationBar(r *v1alpha1.SurgeRemediation) string {
	s := r.Status
	path := []v1alpha1.RemediationPhase{
		v1alpha1.RemediationMarked, v1alpha1.RemediationSurging, v1alpha1.RemediationReplacing, v1alpha1.RemediationRemoving, v1alpha1.RemediationSucceeded,
	}
	if s.Decision == string(v1alpha1.MethodOwnerRemediation) { // it deletes first
		path = []v1alpha1.RemediationPhase{
			v1alpha1.RemediationMarked, v1alpha1.RemediationRemoving, v1alpha1.RemediationReplacing, v1alpha1.RemediationSucceeded,
		}
	}
	at := max(0, slices.Index(path, s.Phase))
	switch {
	case s.Phase == v1alpha1.RemediationRecovered || slices.Contains(path, s.Phase):
	case s.Replacement != "":
		at = slices.Index(path, v1alpha1.RemediationReplacing)
	case s.StartedAt != nil:
		at = 1
	}
	marks, words := make([]string, len(path)), make([]string, len(path))
	for i, phase := range path {
		mark, as := "·", term.Dim
		switch {
		case i < at, i == at && remediations.Good(s.Phase):
			mark, as = "✓", term.Green
		case i == at:
			mark, as = standing(s.Phase), remediationStyle(s.Phase)
		}
		marks[i], words[i] = v.Paint.Text(as, mark), v.Paint.Text(as, mark+" "+string(phase))
	}
	long := strings.Join(words, " ")
	if v.Width > 0 && term.Width(long) > v.Width-Label {
		return fmt.Sprintf("%s %d of %d", strings.Join(marks, ""), at+1, len(path))
	}
	return long
}

// standing is the mark of the phase that a remediation is in.
func standing(p v1alpha1.RemediationPhase) string {
	switch p {
	case v1alpha1.RemediationWaiting, v1alpha1.RemediationHeld, v1alpha1.RemediationFrozen:
		return "‖"
	case v1alpha1.RemediationCancelling:
		return "◀"
	case v1alpha1.RemediationFailed, v1alpha1.RemediationCancelled:
		return "✗"
	default:
		return "▶"
	}
}

// RemediationStanding prints the state of a remediation: the part of a description that changes.
func (v View) RemediationStanding(r *v1alpha1.SurgeRemediation) []string {
	s := r.Status
	out := []string{v.Field("Phase", v.RemediationPhase(s.Phase)), v.Field("", v.RemediationBar(r))}
	if s.MarkedAt != nil {
		out = append(out, v.Field("Marked", v.At(s.MarkedAt)))
	}
	if s.Reason != "" {
		out = append(out, v.Wrapped("Because", s.Reason, term.Plain)...)
	}
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
	if s.Decision != "" {
		out = append(out, v.Field("Decision", s.Decision))
	}
	if s.Replacement != "" {
		out = append(out, v.Field("Replacement", s.Replacement))
	}
	if s.Attempts > 0 {
		out = append(out, v.Field("Attempts", fmt.Sprint(s.Attempts)))
	}
	if s.Quorum != nil {
		out = append(out, v.Field("Etcd", v.Quorum(s.Quorum)))
	}
	return append(out, v.outlook(r)...)
}

// outlook is what happens now, or how it ended, and what a human can do.
func (v View) outlook(r *v1alpha1.SurgeRemediation) []string {
	var out []string
	name := "Now"
	if remediations.Over(r) {
		name = "Outcome"
	}
	switch {
	case r.Status.Message != "":
		out = v.Wrapped(name, r.Status.Message, term.Plain)
	case r.Status.Phase == "":
		out = v.Wrapped(name, "no daemon has taken note of it yet", term.Plain)
	}
	if r.Status.Next != "" {
		out = append(out, v.Wrapped("Next", r.Status.Next, term.Yellow)...)
	}
	return out
}
