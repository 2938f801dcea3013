package remediator_test

import (
	"testing"
	"time"

	"scute.dev/remediator"
)

// TestKeptUntil: what people write on the hook counts; what cannot be read leaves what was recorded.
func TestKeptUntil(t *testing.T) {
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"": since.Add(time.Hour), "long": since.Add(time.Hour), "d": since.Add(time.Hour), "-1d": since.Add(time.Hour),
		"72h": since.Add(72 * time.Hour), " 7d ": since.AddDate(0, 0, 7), "0": since, "-1h": since,
		"2026-05-02T14:00:00+02:00": since.AddDate(0, 0, 1),
	} {
		if got := remediator.KeptUntil(remediator.Keep{Value: value, Since: since}, time.Hour); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
	if got := remediator.KeptUntil(remediator.Keep{Value: "0"}, 0); !got.IsZero() {
		t.Errorf("before it waits: %s", got)
	}
}

// TestCountKept: a machine that is released counts until its hook is off; until then its infrastructure is there.
func TestCountKept(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m := remediator.Subject{Name: "m1", UID: "1"}
	s := &remediator.State{}
	for i, c := range []struct {
		event remediator.Event
		want  int
	}{
		{remediator.MachineKept{Machine: m, For: "1h"}, 1}, {remediator.MachineReleased{Machine: m, Why: "its time is over"}, 1}, {remediator.KeepEnded{Machine: m}, 0},
	} {
		s.Apply(c.event, at)
		if got := remediator.CountKept(s); got != c.want {
			t.Errorf("%d: %d machines are kept after %T, want %d", i, got, c.event, c.want)
		}
	}
}
