package remediation

import (
	"cmp"
	"fmt"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

type output struct{ kit.View }

func (v output) phase(p v1alpha1.RemediationPhase) string {
	return v.Word(string(cmp.Or(p, "Pending")))
}

// row returns the row of a remediation. Cells that do not fit on a terminal are in Wide.
func row(of kit.View, r *v1alpha1.SurgeRemediation) kit.Row {
	v, s := output{of}, r.Status
	return kit.Row{
		Cells: []string{r.Name, v.phase(s.Phase), cmp.Or(s.Decision, "-"), cmp.Or(s.Replacement, "-"), v.members(s.Quorum), v.Age(&r.CreationTimestamp)},
		Wide:  []string{cmp.Or(s.Cluster, "-"), cmp.Or(s.Owner, "-"), cmp.Or(s.Policy, "-"), kit.Tries(s.Attempts), cli.Clean(s.Message)},
	}
}

func (v output) members(q *v1alpha1.QuorumStatus) string {
	switch {
	case q == nil:
		return "-"
	case q.External:
		return "external"
	}
	return v.Paint.Text(kit.Tolerance(q.Tolerates), fmt.Sprintf("%d/%d", q.Responding, q.Voters))
}

func (v output) bar(r *v1alpha1.SurgeRemediation) string {
	s := r.Status
	path := []v1alpha1.RemediationPhase{
		v1alpha1.RemediationMarked, v1alpha1.RemediationSurging, v1alpha1.RemediationReplacing, v1alpha1.RemediationRemoving, v1alpha1.RemediationSucceeded,
	}
	if s.Decision == string(v1alpha1.MethodOwnerRemediation) { // this method deletes the machine first
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
	tone := kit.ToneOf(string(s.Phase))
	return v.Path(kit.Stages(path, at+1, tone.Sign, tone.Style()))
}

// statusLines returns those lines of a description that change over time.
func (v output) statusLines(r *v1alpha1.SurgeRemediation) []string {
	s := r.Status
	out := []string{v.Field("Phase", v.phase(s.Phase)), v.Field("", v.bar(r))}
	if s.MarkedAt != nil {
		out = append(out, v.Field("Marked", v.At(s.MarkedAt)))
	}
	out = append(out, v.Wrapped("Because", s.Reason, cli.Plain)...)
	out = append(out, v.Times(s.StartedAt, s.FinishedAt, cli.Span)...)
	out = append(out, v.Wrapped("Decision", s.Decision, cli.Plain)...)
	out = append(out, v.Wrapped("Replacement", s.Replacement, cli.Plain)...)
	if s.Attempts > 0 {
		out = append(out, v.Field("Attempts", fmt.Sprint(s.Attempts)))
	}
	if s.Quorum != nil {
		out = append(out, v.Field("Etcd", v.Quorum(s.Quorum)))
	}
	out = append(out, v.Untrusted(s.Conditions)...)
	return append(out, v.Outlook(finished(r), s.Phase == "" && s.Message == "", s.Message, s.Next)...)
}
