package pause

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

func status(p *v1alpha1.Pause) kit.Status {
	s := p.Status
	return kit.Status{
		Phase: string(s.Phase), ID: s.PauseID, Since: s.PhaseSince, Started: s.StartedAt, Finished: s.FinishedAt, Message: s.Message, Next: s.Next,
		Conditions: s.Conditions, Details: details(p),
	}
}

func details(p *v1alpha1.Pause) kit.Details {
	d := kit.Details{Fields: []kit.Field{{Name: "Pauses", Value: selection(p)}}, Tables: tables(p)}
	if p.Spec.Reason != "" {
		d.Fields = append(d.Fields, kit.Field{Name: "Reason", Value: p.Spec.Reason})
	}
	if c := p.Status.Counts; c.Objects > 0 {
		d.Counts = []kit.Count{{Name: "Acknowledged", Done: c.Acknowledged, Of: c.Objects}}
	}
	return d
}

func selection(p *v1alpha1.Pause) string {
	var parts []string
	if len(p.Spec.Clusters) > 0 {
		parts = append(parts, "clusters "+strings.Join(p.Spec.Clusters, ", "))
	}
	if p.Spec.Selector != nil {
		parts = append(parts, "clusters with labels "+metav1.FormatLabelSelector(p.Spec.Selector))
	}
	return strings.Join(parts, " and ")
}

func phase(p *v1alpha1.Pause) string { return string(cmp.Or(p.Status.Phase, v1alpha1.PausePending)) }

// tables returns the clusters, the acknowledgements by kind, and the pending objects.
func tables(p *v1alpha1.Pause) []kit.Table {
	s := p.Status
	clusters := kit.Table{Title: "Clusters", Header: []string{"Cluster", "Paused", "Found paused", "Objects", "Acknowledged", "Pending"}}
	for _, c := range s.Clusters {
		clusters.Rows = append(clusters.Rows, []string{
			c.Name, formatBool(c.Paused), formatBool(c.FoundPaused), fmt.Sprint(c.Objects), fmt.Sprint(c.Acknowledged), fmt.Sprint(c.Pending),
		})
	}
	if n := len(s.Clusters); n < s.Counts.Clusters {
		clusters.Note = fmt.Sprintf("The first %d of %d.", n, s.Counts.Clusters)
	}
	kinds := kit.Table{Title: "Kinds", Header: []string{"Kind", "Acknowledged", "Pending", "By", "Slowest"}}
	for _, k := range s.Kinds {
		kinds.Rows = append(kinds.Rows, []string{k.Kind, fmt.Sprint(k.Acknowledged), fmt.Sprint(k.Pending), signals(k), slowest(k)})
	}
	objects := func(title string, list []v1alpha1.PauseWaiting) kit.Table {
		t := kit.Table{Title: title, Header: []string{"Object", "Why"}, Wrap: 2}
		for _, w := range list {
			t.Rows = append(t.Rows, []string{w.Object, w.Message})
		}
		return t
	}
	return []kit.Table{clusters, kinds, objects("Waiting for", s.WaitingFor), objects("Had not acknowledged when the pause ended", s.Unacknowledged)}
}

func formatBool(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

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

func row(v kit.View, p *v1alpha1.Pause) kit.Row {
	c, acked := p.Status.Counts, "-"
	if c.Objects > 0 {
		acked = fmt.Sprintf("%d/%d", c.Acknowledged, c.Objects)
	}
	return kit.Row{
		Cells: []string{p.Name, v.Word(phase(p)), v.Age(p.Status.PhaseSince), fmt.Sprint(c.Clusters), acked, v.Age(&p.CreationTimestamp), cli.Clean(p.Spec.Reason)},
		Wide:  []string{cli.Clean(p.Status.Message)},
	}
}

func fact(p *v1alpha1.Pause) string {
	return kit.StatusLine(phase(p), p.Status.Message, "", p.Status.Next)
}
