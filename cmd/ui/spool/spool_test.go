package spool

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"scute.dev/eventlog"
)

func other(seq uint64) eventlog.Record {
	return eventlog.NewRecord(seq, time.Unix(int64(seq), 0), "another.program", nil, []byte("hi")) //nolint:gosec // small
}

// TestNothingIsLeftBehind by a process that is killed: the file has no name while it is used.
func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if s.removed {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("%v %v", names, err)
		}
	}
	if err := errors.Join(s.Append(other(1)), s.Close()); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v %v", names, err)
	}
}

// TestDropped: below the floor of a log there are gaps, which are no commits; above it a gap is refused.
func TestDropped(t *testing.T) {
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Begin(&eventlog.Floor{Seq: 6, Through: 1})
	for _, seq := range []uint64{2, 5, 6} {
		if err := s.Append(other(seq)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Append(other(8)); err == nil {
		t.Error("a gap above the floor is taken")
	}
	var got []uint64
	if err := s.Replay(0, 6, func(r eventlog.Record) error { got = append(got, r.Seq); return nil }); err != nil || !slices.Equal(got, []uint64{2, 5, 6}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, seq := range []uint64{1, 3, 4} {
		if _, err := s.Read(seq); !errors.Is(err, eventlog.ErrDropped) {
			t.Errorf("commit %d: %v", seq, err)
		}
	}
	if r, err := s.Read(5); err != nil || r.Seq != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}
