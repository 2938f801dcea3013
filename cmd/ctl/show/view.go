package show

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/cmd/ctl/term"
)

// View is how something is shown. The zero value shows it without colors, without a limit of width, in the year 1.
type View struct {
	Paint term.Paint
	Width int // columns; 0 is no limit
	Now   time.Time
}

// At is a time in words and exactly: "3m12s ago (2026-07-30 12:00:05Z)".
func (v View) At(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s", term.Ago(v.Now, t.Time), v.Paint.Text(term.Dim, "("+term.Second(t.Time)+")"))
}

// Age is how long ago a time is.
func (v View) Age(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return term.Span(v.Now.Sub(t.Time))
}
