package eventlog_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
)

// TestReadersMemoryIsBounded checks that a reader that is slower than the server buffers a bounded number of bytes,
// rather than of messages, and receives nothing twice. The server runs in another process, so that its buffers are not
// counted. The log is more than seven times as large as one request of a reader; a reader that requested a number of
// messages would buffer all of it.
func TestReadersMemoryIsBounded(t *testing.T) {
	_, url := serveChild(t, t.TempDir(), "127.0.0.1:0")
	var said bytes.Buffer
	l := connectTest(t, eventlog.ExternalOptions{URL: url, Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	const n, size = 120, 500 << 10 // the client drops messages above 64 MiB
	for i := range n {
		c := commit(moveOf(fmt.Sprint(i)), "c", 0, 1)
		c.Events[0].Data = fmt.Appendf(nil, "%q", strings.Repeat("a", size))
		mustAppend(t, l, c)
	}
	before, peak, seen := heapBytes(), uint64(0), 0
	if _, err := l.Replay(t.Context(), 0, func(eventlog.Record) error {
		if seen++; seen%20 != 1 {
			return nil
		}
		err := waitForPendingReads(withTimeout(t, time.Minute), l)
		peak = max(peak, heapBytes())
		return err
	}); err != nil || seen != n {
		t.Fatalf("replayed %d of %d commits, error %v", seen, n, err)
	}
	t.Logf("%d MiB in use, %d before", peak>>20, before>>20)
	if limit := before + 3*eventlog.PullBytes; peak > limit {
		t.Errorf("%d MiB in use, %d before; want at most %d", peak>>20, before>>20, limit>>20)
	}
	// A busy machine may miss heartbeats for two seconds, after which the reader asks again. No other warning is
	// expected.
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, jetstream.ErrNoHeartbeat.Error()) {
			t.Errorf("unexpected warning: %s", line)
		}
	}
}

// heapBytes returns the size of the live objects of this process in bytes. The second collection
// frees objects that became unreachable during the first.
func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// waitForPendingReads waits until the server has sent all that the readers of the log have requested, or all that it
// has.
func waitForPendingReads(ctx context.Context, l *eventlog.Log) error {
	for open := true; open; {
		open = false
		consumers := l.Stream().ListConsumers(ctx)
		for info := range consumers.Info() {
			open = open || info.NumWaiting > 0 && info.NumPending > 0
		}
		if err := consumers.Err(); err != nil {
			return err
		}
	}
	return l.JetStream().Conn().FlushWithContext(ctx)
}
