package eventlog_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// TestReadersMemoryIsBounded: a reader that is slower than the server holds a bounded number of bytes, not of messages,
// and nothing is delivered twice.
func TestReadersMemoryIsBounded(t *testing.T) {
	var said bytes.Buffer
	l := openTest(t, embedded.Options{Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	const n, size = 200, 500 << 10
	for i := range n {
		c := commit(moveOf(fmt.Sprint(i)), "c", 0, 1)
		c.Events[0].Data = fmt.Appendf(nil, "%q", strings.Repeat("a", size))
		mustAppend(t, l, c)
	}
	var m runtime.MemStats
	inUse := func() uint64 {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	before, peak, seen := inUse(), uint64(0), 0
	if _, err := l.Replay(t.Context(), 0, func(eventlog.Record) error {
		if seen++; seen%20 == 0 { // the collection is the slowness, too
			peak = max(peak, inUse())
		}
		return nil
	}); err != nil || seen != n {
		t.Fatalf("%d of %d: %v", seen, n, err)
	}
	// The server has its own buffers, and they are in this process.
	if limit := before + 6*eventlog.PullBytes; peak > limit {
		t.Errorf("%d MiB in use, %d before; want at most %d", peak>>20, before>>20, limit>>20)
	}
	if said.Len() > 0 {
		t.Errorf("the log warned:\n%s", &said)
	}
}
