package filter

import (
	"testing"
	"time"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"36h":                       now.Add(-36 * time.Hour),
		"2026-07-30":                time.Date(2026, 7, 30, 0, 0, 0, 0, time.UTC),
		"2026-07-30T13:00:00+02:00": now.Add(-time.Hour),
	} {
		var m Moment
		if err := m.Set(value); err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		m.Resolve(now)
		if !m.Equal(want) {
			t.Errorf("%s is %s, want %s", value, m.Time, want)
		}
	}
	for _, value := range []string{"", "0s", "-5m", "tomorrow", "2026-13-01"} {
		if err := new(Moment).Set(value); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
}
