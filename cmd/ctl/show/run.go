package show

import (
	"fmt"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/runs"
	"scute.dev/cmd/ctl/term"
)

// RunPhase is a run's phase, colored.
func (v View) RunPhase(p v1alpha1.RunPhase) string {
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

// RunTable lists runs, one a row; wide adds the id and the message.
func (v View) RunTable(list []*runs.Run, namespaces, wide bool) []string {
	t := term.Table{Header: []string{"NAME", "PHASE", "DONE", "FAILED", "TOOK", "AGE"}}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	if wide {
		t.Header = append(t.Header, "RUN", "MESSAGE")
		t.Wrap = 1
	}
	for _, r := range list {
		c := r.Status.Counts
		age := "-"
		if !r.CreatedAt.IsZero() {
			age = term.Span(v.Now.Sub(r.CreatedAt))
		}
		row := []string{r.Name, v.RunPhase(r.Phase()), done(c), fmt.Sprint(c.Failed), v.took(r), age}
		if namespaces {
			row = append([]string{r.Namespace}, row...)
		}
		if wide {
			row = append(row, r.ID, term.Clean(r.Status.Message))
		}
		t.Add(row...)
	}
	return t.Lines(v.Paint, v.Width)
}

func done(c v1alpha1.TaskCounts) string {
	return fmt.Sprintf("%d/%d", c.Succeeded+c.Ignored+c.Skipped, c.Tasks)
}

// took is how long a run has been in progress, or was.
func (v View) took(r *runs.Run) string {
	s := r.Status
	switch {
	case s.StartedAt.IsZero():
		return "-"
	case s.FinishedAt.IsZero():
		return term.Span(v.Now.Sub(s.StartedAt.Time))
	default:
		return term.Span(s.FinishedAt.Sub(s.StartedAt.Time))
	}
}

// RunStanding prints the state of a run: the part of a description that changes.
func (v View) RunStanding(r *runs.Run) []string {
	s := r.Status
	out := []string{v.field("Phase", v.RunPhase(r.Phase()))}
	if s.StartedAt != nil {
		out = append(out, v.field("Started", v.at(s.StartedAt)))
	}
	if s.FinishedAt != nil {
		took := ""
		if s.StartedAt != nil {
			took = ", after " + span(s.FinishedAt.Sub(s.StartedAt.Time))
		}
		out = append(out, v.field("Ended", v.at(s.FinishedAt)+took))
	}
	if s.Deadline != nil && s.FinishedAt == nil {
		out = append(out, v.field("Deadline", v.until(s.Deadline.Time)))
	}
	out = append(out, v.field("Done", v.counts(s.Counts)))
	if s.Message != "" {
		name := "Now"
		if runs.Rests(r.Phase()) {
			name = "Outcome"
		}
		out = append(out, v.wrapped(name, s.Message, term.Plain)...)
	}
	if r.ID == "" {
		out = append(out, v.wrapped("Now", "no daemon has taken note of it yet", term.Plain)...)
	}
	if s.Next != "" {
		out = append(out, v.wrapped("Next", s.Next, term.Yellow)...)
	}
	return out
}

func (v View) until(t time.Time) string {
	exactly := v.Paint.Text(term.Dim, "("+term.Second(t)+")")
	if left := t.Sub(v.Now); left > 0 {
		return "in " + term.Span(left) + " " + exactly
	}
	return "passed " + exactly
}

// counts is a bar with the numbers that are not nothing.
func (v View) counts(c v1alpha1.TaskCounts) string {
	n := c.Succeeded + c.Ignored + c.Skipped
	as := term.Cyan
	if n == c.Tasks {
		as = term.Green
	}
	if c.Failed+c.Paused+c.Undone > 0 {
		as = term.Yellow
	}
	out := term.Bar(v.Paint, as, n, c.Tasks, barColumns) + " " + term.Of(n, c.Tasks)
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

// span is a duration for what may be short.
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
