package run

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
)

// view shows runs.
type view struct{ show.View }

// Describe returns the description of a run, without its timeline.
func Describe(v show.View, r *Run) []string { return view{v}.describe(r) }

// phase returns the phase of a run, colored.
func (v view) phase(p v1alpha1.RunPhase) string {
	as := term.Cyan
	switch p {
	case v1alpha1.RunSucceeded:
		as = term.Green
	case v1alpha1.RunFailed, v1alpha1.RunAborted, v1alpha1.RunRollbackFailed, v1alpha1.RunStranded:
		as = term.Red
	case v1alpha1.RunDegraded, v1alpha1.RunPaused, v1alpha1.RunPartiallyPaused, v1alpha1.RunRollingBack, v1alpha1.RunRolledBack:
		as = term.Yellow
	}
	return v.Paint.Text(as, string(p))
}

// row returns the row of a run in a table. The ID and the message are wide.
func row(of show.View, r *Run) show.Row {
	v, s := view{of}, r.Status
	done, took := fmt.Sprintf("%d/%d", s.Counts.Succeeded, s.Counts.Tasks), v.elapsed(timeOf(s.StartedAt), timeOf(s.FinishedAt), term.Span)
	return show.Row{
		Cells: []string{r.Name, v.phase(r.Phase()), done, fmt.Sprint(s.Counts.Failed), cmp.Or(took, "-"), v.Age(&metav1.Time{Time: r.CreatedAt})},
		Wide:  []string{r.ID, term.Clean(s.Message)},
	}
}

// statusLines returns the part of a description that changes while the run is in progress.
func (v view) statusLines(r *Run) []string {
	s := r.Status
	out := append([]string{v.Field("Phase", v.phase(r.Phase()))}, v.Times(s.StartedAt, s.FinishedAt, span)...)
	if s.Deadline != nil && s.FinishedAt == nil {
		out = append(out, v.Field("Deadline", v.until(s.Deadline.Time)))
	}
	out = append(out, v.Field("Done", v.counts(s.Counts)))
	out = append(out, v.Untrusted(s.Conditions)...)
	return append(out, v.Outlook(IsIdle(r.Phase()), r.ID == "", s.Message, s.Next)...)
}

func (v view) until(t time.Time) string {
	exactly := v.Paint.Text(term.Dim, "("+term.Second(t)+")")
	if left := t.Sub(v.Now); left > 0 {
		return "in " + term.Span(left) + " " + exactly
	}
	return "passed " + exactly
}

// counts returns a progress bar, followed by the counts that are not zero.
func (v view) counts(c v1alpha1.TaskCounts) string {
	as := term.Cyan
	if c.Succeeded+c.Ignored+c.Skipped == c.Tasks {
		as = term.Green
	}
	if c.Failed+c.Paused+c.Undone > 0 {
		as = term.Yellow
	}
	out := v.Bar(as, c.Succeeded, c.Tasks)
	for _, part := range []struct {
		n    int
		name string
		as   term.Style
	}{
		{c.Running, "running", term.Cyan},
		{c.Paused, "paused", term.Yellow},
		{c.Failed, "failed", term.Red},
		{c.Ignored, "ignored", term.Yellow},
		{c.Skipped, "skipped", term.Dim},
		{c.Undone, "undone", term.Yellow},
	} {
		if part.n > 0 {
			out += ", " + v.Paint.Text(part.as, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return out
}

// span formats a duration that may be shorter than a second.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	default:
		return term.Span(d)
	}
}
