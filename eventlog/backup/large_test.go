package backup_test

import (
	"runtime"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
)

// TestLargeLog backs up and restores a log of 100,000 commits in bounded memory. The servers are separate processes, so
// that their memory is not counted.
func TestLargeLog(t *testing.T) {
	const n = 100_000
	const limit = 48 << 20 // the size of a reader's request, and the buffers of the connection
	var stats runtime.MemStats
	inUse := func() uint64 {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, peak := inUse(), uint64(0)
	measure := func(seq, _ uint64) {
		if seq%10_000 == 0 {
			peak = max(peak, inUse())
		}
	}
	from, to, place := startServerProcess(t), t.TempDir(), startServerProcess(t)
	if err := restoreTo(t.Context(), from, generatedLog(n), embedded.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	withLog(t, from, func(l *eventlog.Log) {
		if _, err := backup.Write(t.Context(), l, to, backup.Options{Now: time.Now(), Copied: measure, Verified: measure}); err != nil {
			t.Fatal(err)
		}
	})
	m, err := backup.Verify(t.Context(), to, nil)
	if err != nil || m.Last != n || m.Bytes() < n*500 {
		t.Fatalf("the backup has %d commits and %d bytes, error %v", m.Last, m.Bytes(), err)
	}
	if len(m.Parts) < 2 {
		t.Errorf("the backup of %d MiB has %d parts, want several", m.Bytes()>>20, len(m.Parts))
	}
	if err := restoreTo(t.Context(), place, backup.Source(to, m, measure, measure), embedded.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := treeCheckpoint(t, place); got != m.Checkpoint() {
		t.Errorf("restored %+v, want %+v", got, m.Checkpoint())
	}
	t.Logf("%d MiB in %d parts, %d MiB in use at most, %d before", m.Bytes()>>20, len(m.Parts), peak>>20, before>>20)
	if peak > before+limit {
		t.Errorf("%d MiB in use, %d before; want at most %d more", peak>>20, before>>20, limit>>20)
	}
}
