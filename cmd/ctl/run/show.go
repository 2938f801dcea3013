package run

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
)

type output struct{ kit.View }

func row(of kit.View, r *Run) kit.Row {
	v, s := output{of}, r.Status
	done, took := fmt.Sprintf("%d/%d", s.Counts.Succeeded, s.Counts.Tasks), v.elapsed(timeOf(s.StartedAt), timeOf(s.FinishedAt), cli.Span)
	return kit.Row{
		Cells: []string{r.Name, v.Word(string(r.Phase())), done, fmt.Sprint(s.Counts.Failed), cmp.Or(took, "-"), v.Age(&metav1.Time{Time: r.CreatedAt})},
		Wide:  []string{r.ID, cli.Clean(s.Message)},
	}
}

// statusLines returns those lines of a description that change over time.
func (v output) statusLines(r *Run) []string {
	s := r.Status
	out := append([]string{v.Field("Phase", v.Word(string(r.Phase())))}, v.Times(s.StartedAt, s.FinishedAt, span)...)
	if s.Deadline != nil && s.FinishedAt == nil {
		out = append(out, v.Field("Deadline", v.until(s.Deadline.Time)))
	}
	out = append(out, v.Field("Done", v.counts(s.Counts)))
	out = append(out, v.Untrusted(s.Conditions)...)
	return append(out, v.Outlook(isIdle(r.Phase()), r.ID == "", s.Message, s.Next)...)
}

func (v output) until(t time.Time) string {
	exactly := v.Paint.Text(cli.Dim, "("+cli.Second(t)+")")
	if left := t.Sub(v.Now); left > 0 {
		return "in " + cli.Span(left) + " " + exactly
	}
	return "passed " + exactly
}

// counts returns a progress bar, and the counts that are not zero.
func (v output) counts(c v1alpha1.TaskCounts) string {
	as := cli.Cyan
	if c.Succeeded+c.Ignored+c.Skipped == c.Tasks {
		as = cli.Green
	}
	if c.Failed+c.Paused+c.Undone > 0 {
		as = cli.Yellow
	}
	out := v.Bar(as, c.Succeeded, c.Tasks)
	for _, one := range Counts(c) {
		out += ", " + v.Paint.Text(kit.ToneOf(one.Name).Style(), fmt.Sprintf("%d %s", one.Done, strings.ToLower(one.Name)))
	}
	return out
}

// Counts returns the number of tasks in each phase that has tasks.
func Counts(c v1alpha1.TaskCounts) []kit.Count {
	return slices.DeleteFunc([]kit.Count{
		{Name: "Running", Done: c.Running},
		{Name: "Paused", Done: c.Paused},
		{Name: "Failed", Done: c.Failed},
		{Name: "Ignored", Done: c.Ignored},
		{Name: "Skipped", Done: c.Skipped},
		{Name: "Undone", Done: c.Undone},
	}, func(one kit.Count) bool { return one.Done == 0 })
}

// span formats a duration, which may be shorter than a second.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return cli.Span(d)
	}
}
