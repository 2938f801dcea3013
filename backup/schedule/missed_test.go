package schedule

import (
	"strings"
	"testing"
)

// TestMissed checks that a time that passed without a backup is reported until a backup succeeds.
func TestMissed(t *testing.T) {
	s := hourly()
	s.backup("a", "2026-11-25T10:15:00")
	if missed := Missed(s, at("2026-11-25T14:15:00")); !missed.IsZero() {
		t.Errorf("Missed within the deadline = %s, want none", missed)
	}
	now := at("2026-11-25T14:15:01")
	if missed := Missed(s, now); !missed.Equal(at("2026-11-25T11:15:00")) {
		t.Errorf("Missed = %s, want 11:15", missed)
	}
	if got := Status(s, now); !strings.Contains(got.Message, "2026-11-25T11:15:00Z") || !strings.Contains(got.Next, "scute.dev/back-up-now") {
		t.Errorf("message %s, next %s", got.Message, got.Next)
	}
	s.Apply(Requested{"x"}, now)
	s.Apply(Started{ID: "b", Request: "x"}, now)
	s.Apply(Completed{Backup{ID: "b", TakenAt: now}}, now)
	if missed := Missed(s, now); !missed.IsZero() {
		t.Errorf("Missed after a requested backup = %s, want none", missed)
	}
}
