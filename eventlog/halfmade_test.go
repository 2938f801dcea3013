package eventlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// TestDeathWhileTheStreamIsMade checks that a log opens after its process was killed while the server created the
// stream, which leaves a description without a checksum. (The kill test had this about once in a thousand kills.)
func TestDeathWhileTheStreamIsMade(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "jetstream", "$G", "streams", eventlog.StreamName)
	if err := os.Remove(filepath.Join(folder, "meta.sum")); err != nil {
		t.Fatal(err)
	}

	for n := range uint64(3) {
		l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
		if err != nil {
			t.Fatalf("start %d: %v", n+1, err)
		}
		if head, err := l.Head(t.Context()); err != nil || head != n {
			t.Fatalf("start %d: Head = %d, error %v, want %d", n+1, head, err, n)
		}
		if _, err := l.Append(t.Context(), commit(moveOf("a"), string(rune('a'+n)), n, 1)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDataIsNeverTakenForHalfMade(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), commit(moveOf("a"), "a", 0, 1)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "jetstream", "$G", "streams", eventlog.StreamName)
	if err := os.Remove(filepath.Join(folder, "meta.sum")); err != nil {
		t.Fatal(err)
	}
	if l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir}); err == nil {
		_ = l.Close()
		t.Error("Open succeeded for a log whose stream the server skipped")
	}
	if blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk")); err != nil || len(blocks) == 0 {
		t.Errorf("the data was removed (error %v)", err)
	}
}

// TestDeathWhileTheStreamIsChanged checks that a log opens after a kill between the changes of a stream's description
// and of its checksum, although the server skips such a stream. A damaged stream is not changed.
func TestDeathWhileTheStreamIsChanged(t *testing.T) {
	for name, c := range map[string]struct {
		sumLater bool
		want     error
	}{"killed": {false, nil}, "damaged": {true, eventlog.ErrMissing}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, MaxBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			folder := filepath.Join(dir, "jetstream", "$G", "streams", eventlog.StreamName)
			meta, sum := filepath.Join(folder, "meta.inf"), filepath.Join(folder, "meta.sum")
			text, err := os.ReadFile(meta)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(string(text), `"max_bytes":1048576`, `"max_bytes":2097152`, 1)
			if changed == string(text) {
				t.Fatalf("the description has an unexpected form: %s", text)
			}
			if err := os.WriteFile(meta, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			if c.sumLater {
				later := time.Now().Add(time.Second)
				if err := os.Chtimes(sum, later, later); err != nil {
					t.Fatal(err)
				}
			}
			l, err = embedded.Open(t.Context(), embedded.Options{Dir: dir})
			if !errors.Is(err, c.want) {
				t.Fatalf("Open = %v, want %v", err, c.want)
			}
			if err != nil {
				return
			}
			defer l.Close()
			if s, err := l.Stats(t.Context()); err != nil || s.Commits != 1 || s.MaxBytes != 2<<20 {
				t.Errorf("Stats = %+v, error %v, want 1 commit and the changed limit", s, err)
			}
		})
	}
}
