package page_test

import (
	"strings"
	"testing"
	"time"

	"scute.dev/aggregate"
	"scute.dev/backup/schedule"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/ui/uitest"
)

// TestBackupSchedule checks that a BackupSchedule is in the lists and has a page, although no page names its kind.
func TestBackupSchedule(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	root := &aggregate.Root[schedule.Event, *schedule.State]{
		Log: log, Catalog: schedule.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindBackup, ID: "fleet/nightly/1"}, Actor: "test", State: new(schedule.State),
		Now: func() time.Time { return time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC) },
	}
	spec := schedule.Spec{Namespace: "fleet", Name: "nightly", Schedule: "0 3 * * *", TimeZone: "Etc/UTC", All: true, Timeout: schedule.Duration(time.Hour), Generation: 1}
	problem := schedule.Problem{Reason: "VolumeFailed", Message: "the volume is full", Next: "make room on the volume"}
	if err := root.Append(t.Context(), schedule.Configured{Spec: spec}, schedule.Started{ID: "b1", Path: "fleet/nightly/b1"}, schedule.Failed{ID: "b1", Problem: problem}); err != nil {
		t.Fatal(err)
	}
	uitest.Fill(t, f, log)
	s := site(t, f)
	for address, want := range map[string][]string{
		"/": {`<h2 id="waiting">Waiting for you <span class="number">1</span>`, `<a href="/object?id=fleet%2Fnightly%2F1&amp;kind=backup">fleet/nightly</a>`, "the volume is full"},
		"/object?kind=backup&id=fleet/nightly/1": {
			`<span class="kind">backupschedule</span> fleet/nightly`, "Failing", "the volume is full", "make room on the volume", "0 3 * * * in Etc/UTC", "backup failed",
		},
	} {
		page := show(t, s, address)
		for _, part := range want {
			if !strings.Contains(page, part) {
				t.Errorf("%s does not contain %q:\n%s", address, part, page)
			}
		}
	}
}

// TestUnreadablePause checks that a Pause with an event of a later version keeps its page and the
// reason, because it may still hold its clusters. An aggregate of an unknown kind has no link.
func TestUnreadablePause(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	of := eventlog.Aggregate{Kind: eventlog.KindPause, ID: "fleet/timed-out/1"}
	var events []eventlog.Event
	for _, h := range uitest.SavedHistories(t, root, "timed-out") {
		events = append(events, h.Events[:4]...)
	}
	last := uitest.Append(t, log, of, 0, events...)
	later := events[3]
	later.Type = "dev.scute.pause.newer-thing.v1"
	uitest.Append(t, log, of, last, later)
	later.Type = "dev.scute.future.begun.v1"
	uitest.Append(t, log, eventlog.Aggregate{Kind: "future", ID: "fleet/x/1"}, 0, later)
	uitest.Fill(t, f, log)
	s := site(t, f)
	if page := show(t, s, "/pause?id=fleet/timed-out/1"); !strings.Contains(page, "newer-thing") {
		t.Errorf("the page of the Pause does not name the event:\n%s", page)
	}
	if page := show(t, s, "/"); strings.Contains(page, "kind=future&amp;") || strings.Contains(page, "/object?id=fleet%2Fx") {
		t.Errorf("an aggregate of an unknown kind has a link:\n%s", page)
	}
}
