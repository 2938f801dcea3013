package eventlog_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestPowerCutWhileDropping: a server that does not sync what it stores loses its power at any step of a drop, and with it nothing, or what is kept.
// As long as the epochs are there the log is whole, and they are dropped when that is asked for again. So is it for a drop that follows another one.
func TestPowerCutWhileDropping(t *testing.T) {
	for _, step := range []string{"made", "compared", "decided", "switched"} {
		for _, loses := range []bool{false, true} {
			for before := range 2 {
				t.Run(fmt.Sprint(step, loses, before), func(t *testing.T) {
					dir, copied := t.TempDir(), t.TempDir()
					l := connectTest(t, eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{StoreDir: dir}).ClientURL(), Create: true})
					archive := droppable(t, l)
					l.SettleAfter(0)
					if before > 0 {
						if err := dropThrough(t.Context(), l, archive, before); err != nil {
							t.Fatal(err)
						}
					}
					l.OnClosing(func(at string) {
						if at == step {
							copyRunning(t, copied, dir)
						}
					})
					if err := dropThrough(t.Context(), l, archive, 3); err != nil {
						t.Fatal(err)
					}
					if loses {
						loseMessages(t, copied, "SCUTE_KEPT_3_*")
					}
					l = connectTest(t, eventlog.ExternalOptions{URL: logtest.Serve(t, &server.Options{StoreDir: copied}).ClientURL(), Create: true})
					if records, err := l.Read(t.Context(), moveOf("long"), 0); err != nil || len(records) != 4 {
						t.Errorf("%v, %v", records, err)
					}
					if err := l.Health(t.Context()); err != nil {
						t.Error(err)
					}
					mustAppend(t, l, commit(moveOf("after"), "1", 0, 1))
					l.SettleAfter(0)
					if err := dropThrough(t.Context(), l, archive, 3); err != nil && (l.Floor() == nil || l.Floor().Through != 3) {
						t.Error(err)
					}
					hasDropped(t, l, 3)
					if got := streams(t, l); !slices.Equal(got, []string{"SCUTE_4", "SCUTE_KEPT_3"}) {
						t.Errorf("the streams are %v", got)
					}
				})
			}
		}
	}
}

// copyRunning copies the files of a running server. The server removes folders of deleted messages in the background, so a file may be gone
// between the listing of its folder and its copy: a power cut finds such a folder half removed, too.
func copyRunning(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Join(err, relErr) != nil:
			return errors.Join(err, relErr)
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// loseMessages makes the files of a server those of one that had not written the messages of a stream to its disk.
func loseMessages(t *testing.T, dir, stream string) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream, "msgs"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	files, err := os.ReadDir(folders[0])
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(folders[0], f.Name())); err != nil {
			t.Fatal(err)
		}
	}
}
