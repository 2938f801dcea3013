package backup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
)

// moveTo moves the log in a folder to a server, as `scutectl log migrate` does. It calls checked before the copy
// becomes a log.
func moveTo(t *testing.T, dir, url string, checked func() error) error {
	t.Helper()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, AllowMoved: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r, err := backup.LogSource(t.Context(), l, func(string, uint64, uint64) {}, checked)
	if err != nil {
		t.Fatal(err)
	}
	return eventlog.RestoreExternal(t.Context(), eventlog.ExternalOptions{URL: url, MaxBytes: 1 << 26}, r)
}

// TestBetween checks that a log is moved to a server with every byte that seals cover, and continues there. After the
// copy is compared, and before it becomes a log, the folder can no longer be opened; an interrupted move can be
// repeated.
func TestBetween(t *testing.T) {
	dir, url := newLog(t, 300), startServer(t)
	appendCommits(t, dir, 5)
	want := treeCheckpoint(t, dir)

	cut := errors.New("killed")
	err := moveTo(t, dir, url, func() error {
		if err := embedded.RecordMove(dir, embedded.Moved{LogID: want.LogID, Last: want.Size, To: url}); err != nil {
			t.Fatal(err)
		}
		return cut
	})
	if !errors.Is(err, cut) {
		t.Fatal(err)
	}
	if _, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: url}); !errors.Is(err, eventlog.ErrConfig) {
		t.Fatalf("Connect to a copy that was not compared = %v, want ErrConfig", err)
	}
	if _, err := embedded.Open(t.Context(), embedded.Options{Dir: dir}); !errors.Is(err, eventlog.ErrMoved) || !strings.Contains(err.Error(), url) {
		t.Fatalf("Open of the moved folder = %v, want ErrMoved with the URL", err)
	}

	if err := moveTo(t, dir, url, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := treeCheckpoint(t, url); got != want {
		t.Errorf("moved %+v, want %+v", got, want)
	}
	appendCommits(t, url, 5)
	if err := moveTo(t, dir, url, func() error { return nil }); !errors.Is(err, eventlog.ErrExists) {
		t.Errorf("move over an existing log = %v, want ErrExists", err)
	}
}

// TestBetweenComparesTheCopy checks that a copy that differs from the log is refused.
func TestBetweenComparesTheCopy(t *testing.T) {
	dir, url := newLog(t, 300), startServer(t)
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	checked := false
	r, err := backup.LogSource(t.Context(), l, func(string, uint64, uint64) {}, func() error { checked = true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	r.Archive = generatedLog(300).Archive // the copy now differs from the log that LogSource read
	if err := eventlog.RestoreExternal(t.Context(), eventlog.ExternalOptions{URL: url}, r); err == nil || !strings.Contains(err.Error(), "the copy differs from the log") || checked {
		t.Errorf("RestoreExternal = %v, checked %t, want an error and no call of checked", err, checked)
	}
}

// TestRestoreWhereALogWasMovedFrom checks that a backup can be restored to a folder whose log was moved away, and the
// folder opened.
func TestRestoreWhereALogWasMovedFrom(t *testing.T) {
	dir, to := newLog(t, 3), t.TempDir()
	backUp(t, dir, to)
	if err := embedded.RecordMove(dir, embedded.Moved{LogID: logID, Last: 3, To: "nats://elsewhere:4222"}); err != nil {
		t.Fatal(err)
	}
	m, err := backup.Read(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := restoreTo(t.Context(), dir, backup.Source(to, m, nil, nil), embedded.RestoreOptions{RenameExistingTo: "old"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "old")); err != nil {
		t.Error(err)
	}
	withLog(t, dir, func(l *eventlog.Log) {
		if head, err := l.Head(context.Background()); err != nil || head != 3 {
			t.Errorf("Head = %d, error %v, want 3", head, err)
		}
	})
}
