package pause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

// output shows pauses.
type output struct{ kit.View }

// Describe returns the description of a Pause without its timeline.
func Describe(v kit.View, p *v1alpha1.Pause) []string {
	out := append(v.Head("Pause", p.Namespace, p.Name, "pause", p.Status.PauseID), v.Field("Pauses", Selection(p)))
	if p.Spec.Reason != "" {
		out = append(out, v.Field("Reason", cli.Clean(p.Spec.Reason)))
	}
	out = append(out, "")
	out = append(out, output{v}.statusLines(p)...)
	return append(out, output{v}.lists(p)...)
}

// Selection describes the clusters that a Pause selects.
func Selection(p *v1alpha1.Pause) string {
	var parts []string
	if len(p.Spec.Clusters) > 0 {
		parts = append(parts, "clusters "+strings.Join(p.Spec.Clusters, ", "))
	}
	if p.Spec.Selector != nil {
		parts = append(parts, "clusters with labels "+metav1.FormatLabelSelector(p.Spec.Selector))
	}
	return strings.Join(parts, " and ")
}

func (v output) phase(p *v1alpha1.Pause) string {
	as := cli.Cyan
	switch p.Status.Phase {
	case v1alpha1.PauseAcknowledged, v1alpha1.PauseReleased:
		as = cli.Green
	case v1alpha1.PauseTimedOut:
		as = cli.Red
	}
	return v.Paint.Text(as, string(cmp.Or(p.Status.Phase, v1alpha1.PausePending)))
}

// statusLines returns the state of a Pause: the part of a description that changes.
func (v output) statusLines(p *v1alpha1.Pause) []string {
	s := p.Status
	out := append([]string{v.Phase(v.phase(p), s.PhaseSince, s.FinishedAt)}, v.Times(s.StartedAt, s.FinishedAt, cli.Span)...)
	if s.Counts.Objects > 0 {
		as := cli.Cyan
		switch {
		case s.Counts.Pending == 0:
			as = cli.Green
		case s.FinishedAt != nil:
			as = cli.Red
		}
		out = append(out, v.Field("Acknowledged", v.Bar(as, s.Counts.Acknowledged, s.Counts.Objects)))
	}
	out = append(out, v.Untrusted(s.Conditions)...)
	return append(out, v.Outlook(s.FinishedAt != nil, s.Phase == "", s.Message, s.Next)...)
}

// lists returns the clusters, the acknowledgements by kind, and the objects that are waited for.
func (v output) lists(p *v1alpha1.Pause) []string {
	s := p.Status
	clusters := &cli.Table{Header: []string{"CLUSTER", "PAUSED", "FOUND PAUSED", "OBJECTS", "ACKNOWLEDGED", "PENDING"}}
	for _, c := range s.Clusters {
		clusters.Add(c.Name, formatBool(c.Paused), formatBool(c.FoundPaused), fmt.Sprint(c.Objects), fmt.Sprint(c.Acknowledged), fmt.Sprint(c.Pending))
	}
	kinds := &cli.Table{Header: []string{"KIND", "ACKNOWLEDGED", "PENDING", "BY", "SLOWEST"}}
	for _, k := range s.Kinds {
		kinds.Add(k.Kind, fmt.Sprint(k.Acknowledged), fmt.Sprint(k.Pending), signals(k), slowest(k))
	}
	return slices.Concat(v.Section("Clusters", clusters), v.Section("Kinds", kinds), v.objects("Waiting for", s.WaitingFor),
		v.objects("Had not acknowledged when the pause ended", s.Unacknowledged))
}

func (v output) objects(title string, list []v1alpha1.PauseWaiting) []string {
	t := &cli.Table{Header: []string{"OBJECT", "WHY"}, Wrap: 2}
	for _, w := range list {
		t.Add(w.Object, cli.Clean(w.Message))
	}
	return v.Section(title, t)
}

func formatBool(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// signals returns how the objects of a kind acknowledged.
func signals(k v1alpha1.PauseKind) string {
	list := k.Signals
	if k.BlockMove {
		list = append([]string{"block-move"}, list...)
	}
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ", ")
}

func slowest(k v1alpha1.PauseKind) string {
	if k.Slowest == nil {
		return "-"
	}
	return view.Duration(k.Slowest.Round(100 * time.Millisecond))
}

// row returns a Pause as a row of a table; the message is wide.
func row(of kit.View, p *v1alpha1.Pause) kit.Row {
	v, c, acked := output{of}, p.Status.Counts, "-"
	if c.Objects > 0 {
		acked = fmt.Sprintf("%d/%d", c.Acknowledged, c.Objects)
	}
	return kit.Row{
		Cells: []string{p.Name, v.phase(p), v.Age(p.Status.PhaseSince), fmt.Sprint(c.Clusters), acked, v.Age(&p.CreationTimestamp), cli.Clean(p.Spec.Reason)},
		Wide:  []string{cli.Clean(p.Status.Message)},
	}
}

// fact returns the state of a Pause as a line for a pipe.
func fact(p *v1alpha1.Pause) string {
	return kit.StatusLine(string(cmp.Or(p.Status.Phase, v1alpha1.PausePending)), p.Status.Message, "", p.Status.Next)
}
