package ui

import (
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/ui/uitest"
)

// TestTheClockOfAnExport checks that the pages of an export use the time of its last commit, so that a run in progress
// does not appear to last until today.
func TestTheClockOfAnExport(t *testing.T) {
	today, stored := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	f := uitest.Feed(t)
	if err := f.Apply(eventlog.NewRecord(1, stored, "another.program", nil, []byte("hi"))); err != nil {
		t.Fatal(err)
	}
	o := &options{Kit: &kit.Kit{Env: &cli.Env{Now: func() time.Time { return today }}}}
	if now := o.logKit(f).Env.Now(); !now.Equal(today) {
		t.Errorf("the clock of a log = %s", now)
	}
	o.From = "export.jsonl"
	if now := o.logKit(f).Env.Now(); !now.Equal(stored) {
		t.Errorf("the clock of an export = %s", now)
	}
}
