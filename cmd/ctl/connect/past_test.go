package connect

import (
	"strconv"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestPastOfALog checks that a log that was ended at a commit has no later commits, and that a time is resolved to the
// last commit before it.
func TestPastOfALog(t *testing.T) {
	log := &Log{Log: logtest.Open(t), Where: "here"}
	a, b := eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/a/1"}, eventlog.Aggregate{Kind: eventlog.KindRun, ID: "fleet/b/1"}
	last := make(map[eventlog.Aggregate]uint64)
	for i := range 9 {
		of := a
		if i%3 == 2 {
			of = b
		}
		receipt, err := log.Append(t.Context(), eventlog.Commit{ID: strconv.Itoa(i), Aggregate: of, Expected: last[of], Events: []eventlog.Event{{Type: "dev.scute.run.claimed.v1", Time: time.Now(), Actor: "test", Data: []byte("{}")}}})
		if err != nil {
			t.Fatal(err)
		}
		last[of] = receipt.Seq
	}
	for seq := uint64(1); seq <= 9; seq++ {
		r, err := log.At(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		found, err := log.Last(t.Context(), r.Stored)
		if err != nil || found.Seq != seq {
			t.Errorf("Last at the time of commit %d = %d, %v", seq, found.Seq, err)
		}
	}
	first, err := log.At(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := log.Last(t.Context(), first.Stored.Add(-time.Nanosecond)); err == nil {
		t.Errorf("Last before the first commit = %d, want an error", r.Seq)
	}

	log.SetEnd(5)
	var seen []uint64
	head, err := log.Replay(t.Context(), 2, func(r eventlog.Record) error { seen = append(seen, r.Seq); return nil })
	if err != nil || head != 5 || len(seen) != 3 {
		t.Errorf("replayed commits %d, head %d, error %v", seen, head, err)
	}
	records, err := log.Read(t.Context(), a, 1)
	if err != nil || len(records) != 3 || records[2].Seq != 5 {
		t.Errorf("read %d commits, error %v", len(records), err)
	}
}
