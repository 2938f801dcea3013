package filter

import (
	"fmt"
	"time"

	"scute.dev/cmd/ctl/term"
)

// Moment is a point in time that an option names: by itself, or by how long before now it is. The zero value names none.
type Moment struct {
	time.Time
	before time.Duration
}

// Set reads "10m", "2026-07-30T12:00:00Z" or "2026-07-30".
func (m *Moment) Set(s string) error {
	if d, err := time.ParseDuration(s); err == nil {
		if d <= 0 {
			return fmt.Errorf("it must be greater than zero")
		}
		*m = Moment{before: d}
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			*m = Moment{Time: t}
			return nil
		}
	}
	return fmt.Errorf("it must be a duration before now (10m, 36h), a time (2026-07-30T12:00:00Z) or a day (2026-07-30)")
}

// Type is the word for the value in the usage of a command.
func (m *Moment) Type() string { return "time" }

// String is the value as it is shown.
func (m *Moment) String() string {
	switch {
	case m.before > 0 && m.IsZero():
		return m.before.String()
	case m.IsZero():
		return ""
	default:
		return term.Second(m.Time)
	}
}

// IsSet says that the option was given.
func (m *Moment) IsSet() bool { return m.before > 0 || !m.IsZero() }

func (m *Moment) resolve(now time.Time) {
	if m.before > 0 {
		m.Time = now.Add(-m.before)
	}
}
