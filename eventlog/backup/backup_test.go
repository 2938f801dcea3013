package backup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
	"scute.dev/eventlog/seal"
)

const logID = "00112233445566aa"

// generatedLog returns a generated log of n commits, spread over seven aggregates.
func generatedLog(n uint64) eventlog.RestoreSource {
	return eventlog.RestoreSource{
		LogID: logID, Last: n,
		Archive: backup.Archive(n, func(_ context.Context, fn func(eventlog.Record) error) error {
			source, random := rand.New(rand.NewPCG(1, 2)), make([]byte, 512) //nolint:gosec // the same every time
			for seq := uint64(1); seq <= n; seq++ {
				before := max(seq, 7) - 7
				binary.BigEndian.PutUint64(random[seq%64*8:], source.Uint64())
				header := map[string][]string{
					"Nats-Msg-Id": {fmt.Sprintf("move.a%d/%d", seq%7, seq)}, "Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(before)},
					"ce-specversion": {"1.0"}, "ce-id": {fmt.Sprintf("%d/0", seq)}, "ce-source": {fmt.Sprintf("scute.dev/move/a%d", seq%7)},
					"ce-type": {"dev.scute.move.tested.v1"}, "ce-time": {"2026-03-04T05:06:07.000000089Z"}, "ce-datacontenttype": {"application/json"},
				}
				stored := time.Unix(1_700_000_000, int64(seq)*1001) //nolint:gosec // small
				data := fmt.Appendf(nil, `{"n":%d,"text":"%x"}`, seq, random[:seq%512])
				if err := fn(eventlog.NewRecord(seq, stored, fmt.Sprintf("scute.log.move.a%d", seq%7), header, data)); err != nil {
					return err
				}
			}
			return nil
		}),
		Check: func(context.Context, *eventlog.Log) error { return nil },
	}
}

// restoreTo restores to a folder, or to the URL of a server.
func restoreTo(ctx context.Context, to string, r eventlog.RestoreSource, allow embedded.RestoreOptions) error {
	if strings.HasPrefix(to, "nats://") {
		return eventlog.RestoreExternal(ctx, eventlog.ExternalOptions{URL: to}, r)
	}
	return embedded.Restore(ctx, embedded.Options{Dir: to}, r, allow)
}

// newLog restores a log of n commits to a new folder.
func newLog(t *testing.T, n uint64) string {
	t.Helper()
	dir := t.TempDir()
	if err := restoreTo(t.Context(), dir, generatedLog(n), embedded.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// withLog opens the log in a folder, or at a URL, and closes it after fn.
func withLog(t *testing.T, where string, fn func(l *eventlog.Log)) {
	t.Helper()
	var l *eventlog.Log
	var err error
	if strings.HasPrefix(where, "nats://") {
		l, err = eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: where, Create: true})
	} else {
		l, err = embedded.Open(t.Context(), embedded.Options{Dir: where})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	fn(l)
}

// backUp backs up the log in a folder.
func backUp(t *testing.T, from, to string) (m backup.Manifest) {
	t.Helper()
	withLog(t, from, func(l *eventlog.Log) {
		var err error
		if m, err = backup.Write(t.Context(), l, to, backup.Options{Now: time.Now()}); err != nil {
			t.Fatal(err)
		}
	})
	return m
}

// treeCheckpoint returns the size and the root hash of a log's tree.
func treeCheckpoint(t *testing.T, where string) (c seal.Checkpoint) {
	t.Helper()
	tree, err := seal.OpenTree(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	withLog(t, where, func(l *eventlog.Log) {
		var h seal.Hasher
		if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error { return tree.Append(h.Hash(r)) }); err != nil {
			t.Fatal(err)
		}
		c.LogID, c.Size = l.ID(), tree.Size()
	})
	if c.Root, err = tree.Root(tree.Size()); err != nil {
		t.Fatal(err)
	}
	return c
}

// appendCommits appends n commits as a daemon does.
func appendCommits(t *testing.T, where string, n int) {
	t.Helper()
	withLog(t, where, func(l *eventlog.Log) {
		head, err := l.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			c := eventlog.Commit{
				Aggregate: eventlog.Aggregate{Kind: eventlog.KindRun, ID: fmt.Sprintf("fleet/r%d-%d", head, i)}, ID: "1",
				Events: []eventlog.Event{{Type: "dev.scute.run.tested.v1", Data: []byte(`{}`)}},
			}
			if _, err := l.Append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// startServer starts a NATS server, and returns its URL.
func startServer(t *testing.T) string {
	t.Helper()
	return logtest.Serve(t, &server.Options{SyncAlways: true}).ClientURL()
}

// mustRestore restores a backup after verifying it.
func mustRestore(t *testing.T, from, to string) {
	t.Helper()
	m, err := backup.Verify(t.Context(), from, nil)
	if err == nil {
		err = restoreTo(t.Context(), to, backup.Source(from, m, nil, nil), embedded.RestoreOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRestore checks that a log backed up in several steps is restored to a folder and to an external server with every
// byte that seals cover, and continues there.
func TestRestore(t *testing.T) {
	dir, to := newLog(t, 300), t.TempDir()
	backUp(t, dir, to)
	appendCommits(t, dir, 20)
	if m := backUp(t, dir, to); len(m.Parts) != 2 || m.Last != 320 {
		t.Fatalf("second backup = %+v, want 2 parts up to 320", m)
	}
	if m := backUp(t, dir, to); len(m.Parts) != 2 {
		t.Fatalf("backup without new commits = %+v, want 2 parts", m)
	}
	want := treeCheckpoint(t, dir)
	for name, place := range map[string]string{"embedded": filepath.Join(t.TempDir(), "new"), "external": startServer(t)} {
		t.Run(name, func(t *testing.T) {
			mustRestore(t, to, place)
			if got := treeCheckpoint(t, place); got != want {
				t.Errorf("restored %+v, want %+v", got, want)
			}
			appendCommits(t, place, 5)
			m, err := backup.Read(to)
			if err != nil {
				t.Fatal(err)
			}
			if err := restoreTo(t.Context(), place, backup.Source(to, m, nil, nil), embedded.RestoreOptions{}); !errors.Is(err, eventlog.ErrExists) {
				t.Errorf("restore over an existing log = %v, want ErrExists", err)
			}
		})
	}
}

// TestRestoreOfAnEmptyLog checks that a log without commits keeps its ID.
func TestRestoreOfAnEmptyLog(t *testing.T) {
	dir, to, place := t.TempDir(), t.TempDir(), t.TempDir()
	want := treeCheckpoint(t, dir)
	backUp(t, dir, to)
	mustRestore(t, to, place)
	if got := treeCheckpoint(t, place); got != want {
		t.Errorf("restored %+v, want %+v", got, want)
	}
}

// TestRestoreBelowTheSize checks that a restore fails if the size limit would leave no room for new commits.
func TestRestoreBelowTheSize(t *testing.T) {
	to := t.TempDir()
	m := backUp(t, newLog(t, 300), to)
	err := embedded.Restore(t.Context(), embedded.Options{Dir: t.TempDir(), MaxBytes: 20_000}, backup.Source(to, m, nil, nil), embedded.RestoreOptions{})
	if !errors.Is(err, eventlog.ErrConfig) || !strings.Contains(err.Error(), "the limit 20000 is smaller") {
		t.Errorf("Restore = %v, want ErrConfig with the limit", err)
	}
}

// TestDamage checks that Verify detects damage of a backup, and reports where it is.
func TestDamage(t *testing.T) {
	dir, good := newLog(t, 200), t.TempDir()
	backUp(t, dir, good)
	appendCommits(t, dir, 10)
	m := backUp(t, dir, good)
	first, second := m.Parts[0].File, m.Parts[1].File
	line := func(text []byte, n int) []byte { return bytes.SplitAfter(text, []byte("\n"))[n-1] }
	for name, c := range map[string]struct {
		file  string
		spoil func([]byte) []byte
		says  []string
	}{
		"a flipped bit in the data of a commit": {first, func(b []byte) []byte {
			l := line(b, 58)
			l[bytes.Index(l, []byte(`"data":"`))+9] ^= 1
			return b
		}, []string{first + ", line 58 (commit 57)", "changed 57"}},
		"a flipped bit that JSON cannot have": {first, func(b []byte) []byte { line(b, 100)[0] ^= 1; return b }, []string{first + ", line 100 (commit 99)"}},
		"a flipped bit that changes nothing":  {second, func(b []byte) []byte { return bytes.Replace(b, []byte("\n"), []byte(" \n"), 1) }, []string{second, "SHA-256"}},
		"a missing message":                   {first, func(b []byte) []byte { return bytes.Replace(b, line(b, 31), nil, 1) }, []string{first + ", line 31 (commit 30)", "missing 30"}},
		"a file that was cut off":             {second, func(b []byte) []byte { return b[:len(b)/2] }, []string{second, "cut off after commit 20"}},
		"an empty file":                       {second, func([]byte) []byte { return nil }, []string{second, "empty"}},
		"an exchanged pair of lines": {first, func(b []byte) []byte {
			return bytes.Replace(b, bytes.Join([][]byte{line(b, 11), line(b, 12)}, nil), bytes.Join([][]byte{line(b, 12), line(b, 11)}, nil), 1)
		}, []string{first + ", line 11 (commit 10)", "reordered 10"}},
		"cut off hashes":            {"hashes", func(b []byte) []byte { return b[:1000] }, []string{"hashes"}},
		"a manifest that says more": {backup.ManifestFile, func(b []byte) []byte { return bytes.Replace(b, []byte(`"last": 210`), []byte(`"last": 211`), 1) }, []string{"the parts end with 210"}},
		"a manifest with another root": {backup.ManifestFile, func(b []byte) []byte {
			other := "A"
			if strings.HasPrefix(m.Root.String(), other) {
				other = "B"
			}
			return bytes.Replace(b, []byte(m.Root.String()), []byte(other+m.Root.String()[1:]), 1)
		}, nil},
		"a manifest that is no JSON":      {backup.ManifestFile, func(b []byte) []byte { return b[:50] }, []string{backup.ManifestFile}},
		"a part with another log's ID":    {second, func(b []byte) []byte { return bytes.Replace(b, []byte(logID), []byte("ff"+logID[2:]), 1) }, []string{second, logID}},
		"a part that is not in its place": {backup.ManifestFile, func(b []byte) []byte { return bytes.Replace(b, []byte(first), []byte("../"+first), 1) }, []string{"parts[0].file"}},
	} {
		t.Run(name, func(t *testing.T) {
			bad := t.TempDir()
			if err := os.CopyFS(bad, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(bad, c.file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.spoil(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = backup.Verify(t.Context(), bad, nil)
			if err == nil {
				t.Fatal("Verify did not detect the damage")
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %v\ndoes not contain %q", err, s)
				}
			}
		})
	}
	if err := os.Remove(filepath.Join(good, first)); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Verify(t.Context(), good, nil); err == nil || !strings.Contains(err.Error(), first) {
		t.Errorf("Verify with a missing file = %v, want an error with its name", err)
	}
}

// TestBackupOfAnotherLog checks that a backup is only continued from the same log.
func TestBackupOfAnotherLog(t *testing.T) {
	dir, to := newLog(t, 50), t.TempDir()
	m := backUp(t, dir, to)
	for name, c := range map[string]struct{ dir, says string }{
		"another log":              {t.TempDir(), "it has a backup of log " + logID},
		"a log that went back":     {newLog(t, 49), "the log ends at 49, the backup at 50"},
		"a log that went on since": {func() string { d := newLog(t, 49); appendCommits(t, d, 5); return d }(), "commit 50 of the log differs from that of the backup"},
	} {
		withLog(t, c.dir, func(l *eventlog.Log) {
			_, err := backup.Write(t.Context(), l, to, backup.Options{Now: time.Now()})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %v, want %q", name, err, c.says)
			}
		})
		if got, err := backup.Verify(t.Context(), to, nil); err != nil || got.Last != m.Last {
			t.Errorf("%s: Verify of the earlier backup = %v, want it unchanged", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(to, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	withLog(t, dir, func(l *eventlog.Log) {
		if _, err := backup.Write(t.Context(), l, to, backup.Options{Now: time.Now()}); err == nil || !strings.Contains(err.Error(), "notes.txt") {
			t.Errorf("Write to a folder with an unrelated file = %v, want an error with its name", err)
		}
	})
}

// TestRestoreOfAnOlderBackup checks that a folder is not replaced by a backup with fewer commits unless this is allowed
// explicitly.
func TestRestoreOfAnOlderBackup(t *testing.T) {
	dir, to := newLog(t, 30), t.TempDir()
	m := backUp(t, dir, to)
	appendCommits(t, dir, 3)
	allow := embedded.RestoreOptions{RenameExistingTo: "jetstream-damaged"}
	err := restoreTo(t.Context(), dir, backup.Source(to, m, nil, nil), allow)
	if !errors.Is(err, eventlog.ErrGap) || !strings.Contains(err.Error(), "up to 33, but the backup ends at 30") {
		t.Errorf("Restore = %v, want ErrGap with both ends", err)
	}
	// A failed restore keeps the folder's mark: the log there must still have all commits.
	allow.AllowOlder = true
	if err := os.MkdirAll(filepath.Join(dir, allow.RenameExistingTo, "something"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restoreTo(t.Context(), dir, backup.Source(to, m, nil, nil), allow); err == nil {
		t.Fatal("Restore set the log aside over an existing folder")
	}
	allow = embedded.RestoreOptions{RenameExistingTo: "jetstream-2"}
	if err := restoreTo(t.Context(), dir, backup.Source(to, m, nil, nil), allow); !errors.Is(err, eventlog.ErrGap) {
		t.Errorf("Restore after a failed attempt = %v, want ErrGap", err)
	}
	allow.AllowOlder = true
	if err := restoreTo(t.Context(), dir, backup.Source(to, m, nil, nil), allow); err != nil {
		t.Fatal(err)
	}
	if got := treeCheckpoint(t, dir); got != m.Checkpoint() {
		t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
	}
	if _, err := os.Stat(filepath.Join(dir, "jetstream-2", "$G")); err != nil {
		t.Errorf("the previous log was not kept: %v", err)
	}
}
