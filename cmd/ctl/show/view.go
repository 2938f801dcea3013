package show

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/cmd/ctl/term"
)

// View renders text. Its zero value has no colors, no limit of width, and a time in the year 1.
type View struct {
	Paint term.Paint
	Width int // columns; 0 means no limit
	Now   time.Time
}

// At formats a time in words and exactly: "3m12s ago (2026-07-30 12:00:05Z)".
func (v View) At(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s", term.Ago(v.Now, t.Time), v.Paint.Text(term.Dim, "("+term.Second(t.Time)+")"))
}

// Age returns how long ago a time is.
func (v View) Age(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return term.Span(v.Now.Sub(t.Time))
}
