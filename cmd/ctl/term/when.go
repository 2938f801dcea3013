package term

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Exact formats a time to the millisecond, in UTC.
func Exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Second formats a time to the second, in UTC.
func Second(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z07:00") }

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
