package projection

import (
	"context"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/earlier"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// TestLogOfAnEarlierVersion: the snapshot of an earlier version is not used; the log is replayed, none of it is set aside, and the
// next start uses the snapshot of this version.
func TestLogOfAnEarlierVersion(t *testing.T) {
	dir, _ := earlier.Extract(t, "../..")
	log := logtest.OpenIn(t, dir)
	fresh := New(usage.Limits{})
	var records []eventlog.Record
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { records = append(records, r); return nil }); err != nil {
		t.Fatal(err)
	}
	fold(t, fresh, records)
	if state, _ := fresh.Trust.State(); state.Cluster != "earlier" {
		t.Errorf("the log belongs to management cluster %q", state.Cluster)
	}
	for _, replayed := range []int{len(records), 0} {
		v := &counted{View: New(usage.Limits{})}
		p := projector.New(log, v, projector.Options{Name: Name, Program: "this", Snapshot: File(Folder(dir)), Every: 1})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Run(ctx) }()
		<-p.CaughtUp()
		stop()
		<-ended
		if v.commits != replayed {
			t.Errorf("%d commits were replayed, want %d", v.commits, replayed)
		}
		same(t, fresh, v.View)
	}
}

// counted counts the commits that are folded in.
type counted struct {
	*View
	commits int
}

func (c *counted) Apply(r eventlog.Record) error {
	c.commits++
	return c.View.Apply(r)
}
