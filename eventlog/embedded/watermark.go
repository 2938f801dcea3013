package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"scute.dev/eventlog"
)

// watermarkFile contains the highest sequence that an embedded log has acknowledged: eight bytes, big-endian.
const watermarkFile = "scute.acknowledged"

// watermark records the acknowledged sequence beside the server's files.
//
// After damage the server starts with a shorter log and only a warning, as if the lost commits had
// never existed. The watermark detects that, because the log must reach at least as far. The file
// is mapped into memory: recording is free, and survives a crash of the process. After a power loss
// the watermark may be some seconds old, which weakens the check but never raises a false alarm. A
// write for each acknowledgement would wait for the file system's journal, which the log's syncs
// keep busy.
type watermark struct {
	mu     sync.Mutex
	file   *os.File
	mapped []byte
}

const watermarkSize = 8

func openWatermark(path string) (*watermark, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the watermark: %w", err)
	}
	mapped, err := mapWatermark(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mapping the watermark %s: %w", path, err), f.Close())
	}
	return &watermark{file: f, mapped: mapped}, nil
}

func mapWatermark(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() < watermarkSize {
		// Truncating to the size would create a hole, which could not be filled on a full disk.
		if _, err := f.WriteAt(make([]byte, watermarkSize), 0); err != nil {
			return nil, err
		}
	}
	return syscall.Mmap(int(f.Fd()), 0, watermarkSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func (w *watermark) raise(seq uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mapped != nil && seq > binary.BigEndian.Uint64(w.mapped) {
		binary.BigEndian.PutUint64(w.mapped, seq)
	}
}

// set records a sequence, even if it is lower than the recorded one.
func (w *watermark) set(seq uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	binary.BigEndian.PutUint64(w.mapped, seq)
	if err := w.file.Sync(); err != nil {
		return fmt.Errorf("writing the watermark: %w", err)
	}
	return nil
}

func (w *watermark) acknowledged() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return binary.BigEndian.Uint64(w.mapped)
}

func (w *watermark) checkHead(head uint64) error {
	if acked := w.acknowledged(); head < acked {
		return fmt.Errorf("%w: commits up to %d were acknowledged, but the log ends at %d: its tail was damaged or removed; restore it from a backup",
			eventlog.ErrGap, acked, head)
	}
	return nil
}

func (w *watermark) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := syscall.Munmap(w.mapped)
	w.mapped = nil
	if err = errors.Join(err, w.file.Sync(), w.file.Close()); err != nil {
		return fmt.Errorf("closing the watermark: %w", err)
	}
	return nil
}
