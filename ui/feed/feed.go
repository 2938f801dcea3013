package feed

import (
	"errors"
	"fmt"
	"sync"

	"scute.dev/eventlog"
)

// MaxReaders limits the pages that follow the log at once.
const MaxReaders = 512

// maxPastBytes limits the cached past state, by the size of its commits.
const maxPastBytes = 64 << 20

// ErrBusy means that MaxReaders pages already follow the log.
var ErrBusy = errors.New("too many open pages follow the log: close some")

// Feed is one log, read once for all pages. Use New.
type Feed struct {
	Commits *Spool

	mu   sync.Mutex
	live *Snapshot

	pastMu sync.Mutex
	past   *Snapshot // last past state, from which a later one is computed without a full replay; or nil

	notifyMu sync.Mutex
	readers  map[chan struct{}]struct{}
}

// New returns a Feed of an empty log.
func New(commits *Spool) *Feed {
	return &Feed{Commits: commits, live: NewSnapshot(), readers: make(map[chan struct{}]struct{})}
}

// Apply applies the next commit and notifies the pages. It ignores commits that it already has.
func (f *Feed) Apply(r eventlog.Record) error {
	if r.Seq <= f.Commits.Head() {
		return nil
	}
	if err := f.Commits.Append(r); err != nil {
		return err
	}
	f.mu.Lock()
	f.live.Apply(r)
	f.mu.Unlock()
	f.notify()
	return nil
}

// Now calls fn with the current state. fn must not retain it.
func (f *Feed) Now(fn func(*Snapshot) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fn(f.live)
}

// Commit calls fn with a Snapshot that has only the sequence and time of a commit (the last one
// unless past), and no aggregates. It holds no lock, so fn may take long.
func (f *Feed) Commit(seq uint64, past bool, fn func(*Snapshot) error) error {
	head := f.Commits.Head()
	if !past {
		seq = head
	}
	if seq > head {
		return fmt.Errorf("%w: commit %d, the last commit is %d", ErrNotFound, seq, head)
	}
	w := NewSnapshot()
	w.Seq, w.Stored = seq, f.Commits.Stored(seq)
	return fn(w)
}

// At calls fn with the state after a commit, as a replay computes it. fn must not retain it.
func (f *Feed) At(seq uint64, fn func(*Snapshot) error) error {
	if head := f.Commits.Head(); seq > head {
		return fmt.Errorf("%w: commit %d, the last commit is %d", ErrNotFound, seq, head)
	}
	f.pastMu.Lock()
	defer f.pastMu.Unlock()
	w := f.past
	if f.past = nil; w == nil || w.Seq > seq {
		w = NewSnapshot()
	}
	if err := f.Commits.Replay(w.Seq, seq, func(r eventlog.Record) error { w.Apply(r); return nil }); err != nil {
		return err // the partial state is discarded
	}
	if f.Commits.Bytes(seq) <= maxPastBytes {
		f.past = w
	}
	return fn(w)
}

// Follow returns a channel that receives after changes, until stop is called. A slow reader
// receives one notification for all changes since its last one.
func (f *Feed) Follow() (more <-chan struct{}, stop func(), err error) {
	f.notifyMu.Lock()
	defer f.notifyMu.Unlock()
	if len(f.readers) >= MaxReaders {
		return nil, nil, ErrBusy
	}
	c := make(chan struct{}, 1)
	f.readers[c] = struct{}{}
	return c, func() {
		f.notifyMu.Lock()
		defer f.notifyMu.Unlock()
		delete(f.readers, c)
	}, nil
}

func (f *Feed) notify() {
	f.notifyMu.Lock()
	defer f.notifyMu.Unlock()
	for c := range f.readers {
		select {
		case c <- struct{}{}:
		default: // a notification is already pending
		}
	}
}
