package cli

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"scute.dev/view"
)

// Exact formats a time to the millisecond, in UTC.
func Exact(t time.Time) string { return view.Exact(t) }

// Second formats a time to the second, in UTC.
func Second(t time.Time) string { return view.Second(t) }

// Span formats a duration like an age in kubectl: "4s", "3m12s", "5h".
func Span(d time.Duration) string { return duration.HumanDuration(d) }

// Ago formats how long before now a time was: "3m12s ago", "just now".
func Ago(now, t time.Time) string {
	d := now.Sub(t)
	if d < time.Second {
		return "just now"
	}
	return Span(d) + " ago"
}
