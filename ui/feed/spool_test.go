package feed

import (
	"errors"
	"os"
	"testing"
	"time"

	"scute.dev/eventlog"
)

func other(seq uint64) eventlog.Record {
	return eventlog.NewRecord(seq, time.Unix(int64(seq), 0), "another.program", nil, []byte("hi")) //nolint:gosec // small
}

// TestNothingIsLeftBehind checks that a killed process leaves no file, because the file is unlinked while it is used.
func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s, err := NewSpool()
	if err != nil {
		t.Fatal(err)
	}
	if s.removed {
		if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
			t.Errorf("got files %v, error %v", names, err)
		}
	}
	if err := errors.Join(s.Append(other(1)), s.Close()); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("got files %v, error %v", names, err)
	}
}
