package backup_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
)

// TestBackupKeepsWhatIsNotItsOwn checks that a backup refuses a folder with exports, with an auditor's hashes or with
// an earlier backup without a manifest, and changes none of these files.
func TestBackupKeepsWhatIsNotItsOwn(t *testing.T) {
	dir := newLog(t, 20)
	for name, files := range map[string][]string{
		"exports":                       {"log-2026-11-21.jsonl"},
		"what a daemon published":       {"hashes", "checkpoints"},
		"a backup without its manifest": {"log-0000000000000001.jsonl", "hashes"},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			for _, f := range files {
				if err := os.WriteFile(filepath.Join(to, f), []byte("mine\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			withLog(t, dir, func(l *eventlog.Log) {
				if _, err := backup.Write(t.Context(), l, to, backup.Options{Now: time.Now()}); err == nil {
					t.Error("Write to the folder succeeded")
				}
			})
			for _, f := range files {
				if text, err := os.ReadFile(filepath.Join(to, f)); err != nil || string(text) != "mine\n" {
					t.Errorf("%s was changed, it has %d bytes, error %v", f, len(text), err)
				}
			}
		})
	}
}
