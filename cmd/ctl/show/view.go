package show

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/term"
	"scute.dev/mover"
)

// View is how something is shown. The zero value shows it without colors, without a limit of width, in the year 1.
type View struct {
	Paint term.Paint
	Width int // columns; 0 is no limit
	Now   time.Time
}

// style of a phase.
func style(p mover.Phase) term.Style {
	switch p {
	case mover.PhaseSucceeded:
		return term.Green
	case mover.PhaseFailed:
		return term.Red
	case mover.PhaseRollingBack, mover.PhaseRolledBack:
		return term.Yellow
	default:
		return term.Cyan
	}
}

// Phase is a Move's phase, colored; "Pending" for one that nobody has taken up.
func (v View) Phase(m *v1alpha1.Move) string {
	p := cmp.Or(m.Status.Phase, mover.PhasePending)
	return v.Paint.Text(style(p), string(p))
}

// At is a time in words and exactly: "3m12s ago (2026-07-30 12:00:05Z)".
func (v View) At(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s", term.Ago(v.Now, t.Time), v.Paint.Text(term.Dim, "("+term.Second(t.Time)+")"))
}

func (v View) Age(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return term.Span(v.Now.Sub(t.Time))
}
