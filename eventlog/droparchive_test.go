package eventlog_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
)

// TestArchiveOfAnotherPast: an archive that has more than the log had when the log was set back, and continued in another way, cannot be continued
// by a backup. Nothing is dropped for it, because no other archive could be made then.
func TestArchiveOfAnotherPast(t *testing.T) {
	dir, earlier, archive := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "archive")
	l := openTest(t, embedded.Options{Dir: dir})
	droppable(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := embedded.CopyFolder(dir, earlier); err != nil {
		t.Fatal(err)
	}
	back := func(l *eventlog.Log, archive string) {
		t.Helper()
		if _, err := backup.Write(t.Context(), l, archive, backup.Options{Now: decided}); err != nil {
			t.Fatal(err)
		}
	}
	l = openTest(t, embedded.Options{Dir: dir})
	mustAppend(t, l, commit(moveOf("lost"), "1", 0, 1))
	back(l, archive)
	l = openTest(t, embedded.Options{Dir: earlier})
	before := streams(t, l)
	wantText(t, dropThrough(t.Context(), l, archive, 2), "ends with commit 15, the log with 14: the archive is of a copy of this log")
	for _, id := range []string{"other", "another"} {
		mustAppend(t, l, commit(moveOf(id), "1", 0, 1))
		wantText(t, dropThrough(t.Context(), l, archive, 2), "has other commits between")
	}
	if got := streams(t, l); !slices.Equal(got, before) {
		t.Errorf("the streams are %v, were %v", got, before)
	}
	archive = filepath.Join(t.TempDir(), "archive")
	back(l, archive)
	if err := dropThrough(t.Context(), l, archive, 2); err != nil {
		t.Error(err)
	}
	back(l, archive)
}

// wantText checks what an error says.
func wantText(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %q", err, says)
	}
}
