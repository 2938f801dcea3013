package eventlog_test

import (
	"os"
	"path/filepath"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// A process killed while the server creates the stream leaves a description without a checksum. (The kill test met it
// about once in a thousand kills.)
func TestDeathWhileTheStreamIsMade(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "jetstream", "$G", "streams", eventlog.DefaultStream)
	if err := os.Remove(filepath.Join(folder, "meta.sum")); err != nil {
		t.Fatal(err)
	}

	for n := range uint64(3) {
		l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
		if err != nil {
			t.Fatalf("start %d: %v", n+1, err)
		}
		if head, err := l.Head(t.Context()); err != nil || head != n {
			t.Fatalf("start %d: the log ends at %d (%v), want %d", n+1, head, err, n)
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
	folder := filepath.Join(dir, "jetstream", "$G", "streams", eventlog.DefaultStream)
	if err := os.Remove(filepath.Join(folder, "meta.sum")); err != nil {
		t.Fatal(err)
	}
	if l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir}); err == nil {
		_ = l.Close()
		t.Error("a log whose stream the server passes over was opened")
	}
	if blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk")); err != nil || len(blocks) == 0 {
		t.Errorf("the data is gone (%v)", err)
	}
}
