package backup_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
)

// TestBackupIsKilled checks that a killed backup leaves the earlier backup, and that the next backup is complete.
func TestBackupIsKilled(t *testing.T) {
	dir := newLog(t, 400)
	for _, phase := range []string{"copy", "check"} {
		for _, at := range []uint64{1, 123, 400} {
			t.Run(fmt.Sprintf("first, %s %d", phase, at), func(t *testing.T) {
				to := t.TempDir()
				killAt(t, "backup", dir, to, phase, at)
				if _, err := backup.Verify(t.Context(), to, nil); !errors.Is(err, backup.ErrNotFound) {
					t.Errorf("Verify of an incomplete backup = %v, want ErrNone", err)
				}
				backUp(t, dir, to)
				place := t.TempDir()
				mustRestore(t, to, place)
				if got, want := treeCheckpoint(t, place), treeCheckpoint(t, dir); got != want {
					t.Errorf("restored %+v, want %+v", got, want)
				}
			})
		}
	}
	longer := t.TempDir()
	if err := restoreTo(t.Context(), longer, generatedLog(450), embedded.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"copy", "check"} {
		t.Run("second, "+phase, func(t *testing.T) {
			to := t.TempDir()
			was := backUp(t, dir, to)
			killAt(t, "backup", longer, to, phase, 425)
			if m, err := backup.Verify(t.Context(), to, nil); phase == "copy" && (err != nil || m.Root != was.Root) {
				t.Errorf("the earlier backup was changed: %v", err)
			}
			if m := backUp(t, longer, to); m.Last != 450 {
				t.Errorf("the next backup ends at %d, want 450", m.Last)
			}
			if _, err := backup.Verify(t.Context(), to, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRestoreIsKilled checks that a killed restore leaves nothing that opens as a log, and that the next restore is
// complete.
func TestRestoreIsKilled(t *testing.T) {
	from := t.TempDir()
	m := backUp(t, newLog(t, 400), from)
	for _, phase := range []string{"copy", "check"} {
		for _, at := range []uint64{1, 200, 400} {
			t.Run(fmt.Sprintf("embedded, %s %d", phase, at), func(t *testing.T) {
				to := t.TempDir()
				killAt(t, "restore", from, to, phase, at)
				if _, err := os.Stat(filepath.Join(to, "jetstream")); err == nil {
					t.Error("an incomplete log exists")
				}
				mustRestore(t, from, to)
				if got := treeCheckpoint(t, to); got != m.Checkpoint() {
					t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
				}
				if entries, err := filepath.Glob(filepath.Join(to, "*restoring*")); err != nil || len(entries) > 0 {
					t.Errorf("files of the killed restore remain: %v, error %v", entries, err)
				}
			})
			t.Run(fmt.Sprintf("external, %s %d", phase, at), func(t *testing.T) {
				t.Parallel() // a server waits five seconds for the rest of an interrupted restore
				to := startServer(t)
				killAt(t, "restore", from, to, phase, at)
				if _, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: to}); err == nil ||
					!errors.Is(err, eventlog.ErrMissing) && !strings.Contains(err.Error(), "its restore did not end") {
					t.Errorf("Connect to an incomplete log = %v", err)
				}
				mustRestore(t, from, to)
				if got := treeCheckpoint(t, to); got != m.Checkpoint() {
					t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
				}
			})
		}
	}
}
