package feed

import (
	"testing"
	"time"

	"scute.dev/eventlog"
)

// TestMomentsThatAreKeptAreBounded checks that kept moments are limited in number and in the size of their commits, and
// that a moment that is too large can still be requested.
func TestMomentsThatAreKeptAreBounded(t *testing.T) {
	commits, err := NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer commits.Close()
	for seq := uint64(1); seq <= 40; seq++ {
		if err := commits.Append(eventlog.NewRecord(seq, time.Unix(0, 0), "another.program", nil, []byte("hi"))); err != nil {
			t.Fatal(err)
		}
	}
	p := pastCache{maxBytes: commits.Bytes(20)}
	for _, c := range []struct {
		seq  uint64
		kept []uint64
	}{
		{4, []uint64{4}}, {3, []uint64{4, 3}}, {2, []uint64{4, 3, 2}}, {1, []uint64{3, 2, 1}}, {18, []uint64{1, 18}}, {30, nil}, {6, []uint64{6}}, {12, []uint64{12}},
	} {
		err := p.at(commits, c.seq, func(w *Snapshot) error {
			if w.Seq != c.seq {
				t.Errorf("requested commit %d, got %d", c.seq, w.Seq)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var kept []uint64
		for _, w := range p.cached {
			kept = append(kept, w.Seq)
		}
		if len(kept) != len(c.kept) {
			t.Fatalf("after commit %d: kept %v, want %v", c.seq, kept, c.kept)
		}
		for i := range kept {
			if kept[i] != c.kept[i] {
				t.Errorf("after commit %d: kept %v, want %v", c.seq, kept, c.kept)
			}
		}
	}
}
