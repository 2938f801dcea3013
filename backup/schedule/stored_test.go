package schedule_test

import (
	"testing"
	"time"

	"scute.dev/backup/schedule"
	"scute.dev/internal/pinned"
)

// TestStored checks that stored events still have the form in which they were written.
func TestStored(t *testing.T) {
	pinned.Events(t, schedule.NewCatalog(), schedule.Duration(90*time.Second), time.Date(2026, 11, 25, 10, 15, 0, 0, time.UTC))
}
