package eventlog_test

import (
	"os"
	"path/filepath"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// TestFilesRemovedUnderTheLog checks that appends fail after the log's files were removed, although the server still
// acknowledges what it writes to them.
func TestFilesRemovedUnderTheLog(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"all of them":  os.RemoveAll,
		"the server's": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "jetstream")) },
		"moved away":   func(dir string) error { return os.Rename(dir, dir+".moved") },
		"replaced by a copy": func(dir string) error {
			if err := os.Rename(dir, dir+".moved"); err != nil {
				return err
			}
			return os.CopyFS(dir, os.DirFS(dir+".moved"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "log")
			l := openTest(t, embedded.Options{Dir: dir})
			if _, err := l.Append(t.Context(), commit(moveOf("a"), "one", 0, 1)); err != nil {
				t.Fatal(err)
			}
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			_, err := l.Append(t.Context(), commit(moveOf("a"), "two", 1, 1))
			wantErr(t, err, eventlog.ErrMissing, "was removed or replaced", "are not recorded")
			wantErr(t, l.Health(t.Context()), eventlog.ErrMissing)
		})
	}
}
