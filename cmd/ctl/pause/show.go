package pause

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/internal/timespan"
	"scute.dev/pause"
)

// view is how pauses are shown.
type view struct{ show.View }

func duration(d pause.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(d)}
}

// Describe is all there is to say about a Pause but its timeline.
func Describe(v show.View, p *v1alpha1.Pause) []string {
	out := []string{v.Field("Pause", v.Paint.Text(term.Bold, p.Namespace+"/"+p.Name))}
	if p.Status.PauseID != "" {
		out = append(out, v.Field("In the log", "pause/"+p.Status.PauseID))
	}
	out = append(out, v.Field("Pauses", Selection(p)))
	if p.Spec.Reason != "" {
		out = append(out, v.Field("Reason", term.Clean(p.Spec.Reason)))
	}
	out = append(out, "")
	out = append(out, view{v}.standing(p)...)
	return append(out, view{v}.lists(p)...)
}

// Selection says in words which clusters a Pause is about.
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

func (v view) phase(p *v1alpha1.Pause) string {
	as := term.Cyan
	switch p.Status.Phase {
	case v1alpha1.PauseAcknowledged, v1alpha1.PauseReleased:
		as = term.Green
	case v1alpha1.PauseTimedOut:
		as = term.Red
	}
	return v.Paint.Text(as, string(cmp.Or(p.Status.Phase, v1alpha1.PausePending)))
}

// standing is the state of a Pause: the part of a description that changes.
func (v view) standing(p *v1alpha1.Pause) []string {
	s := p.Status
	phase := v.phase(p)
	if s.PhaseSince != nil && s.FinishedAt == nil {
		phase += " for " + v.Age(s.PhaseSince) + v.Paint.Text(term.Dim, " (since "+term.Second(s.PhaseSince.Time)+")")
	}
	out := append([]string{v.Field("Phase", phase)}, v.Times(s.StartedAt, s.FinishedAt, term.Span)...)
	if s.Counts.Objects > 0 {
		as := term.Cyan
		switch {
		case s.Counts.Pending == 0:
			as = term.Green
		case s.FinishedAt != nil:
			as = term.Red
		}
		out = append(out, v.Field("Acknowledged", v.Bar(as, s.Counts.Acknowledged, s.Counts.Objects)))
	}
	out = append(out, v.Untrusted(s.Conditions)...)
	return append(out, v.Outlook(s.FinishedAt != nil, s.Phase == "", s.Message, s.Next)...)
}

// lists are the clusters, how each kind answered, and what is waited for.
func (v view) lists(p *v1alpha1.Pause) (out []string) {
	s := p.Status
	if len(s.Clusters) > 0 {
		t := term.Table{Header: []string{"CLUSTER", "PAUSED", "FOUND PAUSED", "OBJECTS", "ACKNOWLEDGED", "PENDING"}, Indent: "  "}
		for _, c := range s.Clusters {
			t.Add(c.Name, yes(c.Paused), yes(c.FoundPaused), fmt.Sprint(c.Objects), fmt.Sprint(c.Acknowledged), fmt.Sprint(c.Pending))
		}
		out = append(append(out, "", "Clusters:"), t.Lines(v.Paint, v.Width)...)
	}
	if len(s.Kinds) > 0 {
		t := term.Table{Header: []string{"KIND", "ACKNOWLEDGED", "PENDING", "BY", "SLOWEST"}, Indent: "  "}
		for _, k := range s.Kinds {
			t.Add(k.Kind, fmt.Sprint(k.Acknowledged), fmt.Sprint(k.Pending), signals(k), slowest(k))
		}
		out = append(append(out, "", "Kinds:"), t.Lines(v.Paint, v.Width)...)
	}
	out = append(out, v.objects("Waiting for:", s.WaitingFor)...)
	return append(out, v.objects("Had not acknowledged when the pause ended:", s.Unacknowledged)...)
}

func (v view) objects(title string, list []v1alpha1.PauseWaiting) []string {
	if len(list) == 0 {
		return nil
	}
	t := term.Table{Header: []string{"OBJECT", "WHY"}, Wrap: 2, Indent: "  "}
	for _, w := range list {
		t.Add(w.Object, term.Clean(w.Why))
	}
	return append([]string{"", title}, t.Lines(v.Paint, v.Width)...)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// signals are the ways in which the objects of a kind answered.
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
	return timespan.Text(k.Slowest.Round(100 * time.Millisecond))
}

// table lists Pauses, one a row; wide adds the message.
func (v view) table(list []*v1alpha1.Pause, namespaces, wide bool) []string {
	rows := make([]show.Row, len(list))
	for i, p := range list {
		c := p.Status.Counts
		acked := "-"
		if c.Objects > 0 {
			acked = fmt.Sprintf("%d/%d", c.Acknowledged, c.Objects)
		}
		rows[i] = show.Row{
			Namespace: p.Namespace,
			Cells:     []string{p.Name, v.phase(p), v.Age(p.Status.PhaseSince), fmt.Sprint(c.Clusters), acked, v.Age(&p.CreationTimestamp), term.Clean(p.Spec.Reason)},
			Wide:      []string{term.Clean(p.Status.Message)},
		}
	}
	header := show.Row{Cells: []string{"NAME", "PHASE", "SINCE", "CLUSTERS", "ACKNOWLEDGED", "AGE", "REASON"}, Wide: []string{"MESSAGE"}}
	return v.Rows(header, rows, namespaces, wide)
}

// fact is a Pause in one line, for a pipe.
func fact(p *v1alpha1.Pause) string {
	line := string(cmp.Or(p.Status.Phase, v1alpha1.PausePending))
	if p.Status.Message != "" {
		line += ": " + p.Status.Message
	}
	if p.Status.Next != "" {
		line += "; next: " + p.Status.Next
	}
	return line
}
