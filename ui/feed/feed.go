package feed

import (
	"errors"
	"fmt"
	"sync"

	"scute.dev/eventlog"
)

// MaxReaders limits how many pages follow the log at the same time.
const MaxReaders = 512

// maxPastBytes is the size of the commits up to which a past state is cached.
const maxPastBytes = 64 << 20

// ErrBusy means that MaxReaders pages already follow the log.
var ErrBusy = errors.New("too many open pages follow the log: close some")

// Feed is the state of one log, which is read once for all pages. Create it with New.
type Feed struct {
	Commits *Spool

	mu   sync.Mutex
	live *Snapshot

	pastMu sync.Mutex
	past   *Snapshot // the last computed past state, from which a later one is computed; or nil

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

// Commit calls fn with a Snapshot that contains only the sequence and the time of a commit, and no
// aggregates. If past is false, this is the last commit. Commit holds no lock, so fn may take long.
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

// At calls fn with the state after the commit seq, which it computes by a replay. fn must not
// retain the state.
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

// Follow returns a channel that receives a value after changes, until stop is called. A slow reader
// receives one value for all changes since the previous value.
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
