package eventlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// watermarkFile holds the highest sequence that an embedded log has acknowledged.
const watermarkFile = "scute.acknowledged"

// watermark remembers what was acknowledged, beside the server's own files.
//
// After damage the server starts with a shorter log and only a warning, as if the lost commits had never been. With
// the watermark a start can tell: the log must reach at least as far. It is written without a sync after each
// acknowledgement (about a microsecond), so it outlives the process; at a power loss it may be some seconds old, which
// weakens the check but never raises a false alarm.
type watermark struct {
	seq     atomic.Uint64 // the highest acknowledged
	writing sync.Mutex    // held by whoever writes it to f
	f       *os.File
}

func openWatermark(path string) (*watermark, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the watermark: %w", err)
	}
	w := &watermark{f: f}
	var b [8]byte
	switch _, err := f.ReadAt(b[:], 0); {
	case err == nil:
		w.seq.Store(binary.BigEndian.Uint64(b[:]))
	case !errors.Is(err, io.EOF):
		f.Close()
		return nil, fmt.Errorf("reading the watermark: %w", err)
	}
	return w, nil
}

// raise records that seq was acknowledged. It waits for nobody: while one caller writes, others leave their sequence to
// it. On a nil watermark (an external log) it does nothing.
func (w *watermark) raise(seq uint64) error {
	if w == nil {
		return nil
	}
	for have := w.seq.Load(); have < seq && !w.seq.CompareAndSwap(have, seq); {
		have = w.seq.Load()
	}
	for w.writing.TryLock() {
		now := w.seq.Load()
		err := w.write(now)
		w.writing.Unlock()
		if err != nil || w.seq.Load() == now {
			return err
		}
	}
	return nil
}

func (w *watermark) write(seq uint64) error {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seq)
	if _, err := w.f.WriteAt(b[:], 0); err != nil {
		return fmt.Errorf("writing the watermark: %w", err)
	}
	return nil
}

// covered checks that a log whose last sequence is head holds everything that was acknowledged.
func (w *watermark) covered(head uint64) error {
	if acked := w.seq.Load(); head < acked {
		return fmt.Errorf("%w: commits up to %d were acknowledged, but the log ends at %d: its tail was damaged or removed; restore it from a backup",
			ErrGap, acked, head)
	}
	return nil
}

func (w *watermark) close() error {
	return errors.Join(w.f.Sync(), w.f.Close())
}
