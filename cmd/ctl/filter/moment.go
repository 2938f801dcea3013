package filter

import (
	"fmt"
	"strconv"
	"strings"
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
			return fmt.Errorf("it must be a duration greater than zero")
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

// Resolve makes an exact time of one before now.
func (m *Moment) Resolve(now time.Time) {
	if m.before > 0 {
		m.Time = now.Add(-m.before)
	}
}

// Point is a point of the log: a commit by its sequence, or the last one at a moment.
type Point struct {
	Moment
	Seq uint64
}

// Set reads a sequence, or what a Moment reads.
func (p *Point) Set(s string) error {
	if seq, err := strconv.ParseUint(s, 10, 64); err == nil {
		if seq == 0 {
			return fmt.Errorf("the first sequence is 1")
		}
		*p = Point{Seq: seq}
		return nil
	}
	var m Moment
	if err := m.Set(s); err != nil {
		return fmt.Errorf("it must be the sequence of a commit (812), or %s", strings.TrimPrefix(err.Error(), "it must be "))
	}
	*p = Point{Moment: m}
	return nil
}

// Type is the word for the value in the usage of a command.
func (p *Point) Type() string { return "sequence|time" }

// String is the value as it is shown.
func (p *Point) String() string {
	if p.Seq > 0 {
		return strconv.FormatUint(p.Seq, 10)
	}
	return p.Moment.String()
}

// IsSet says that the option was given.
func (p *Point) IsSet() bool { return p.Seq > 0 || p.Moment.IsSet() }
