package feed

import (
	"errors"
	"fmt"
	"sync"

	"scute.dev/eventlog"
)

// Readers bounds how many pages may be told of changes at once.
const Readers = 512

// ErrBusy says that as many pages follow the log as may.
var ErrBusy = errors.New("too many open pages follow the log: close some")

// Feed is one log, read once for all pages. Its zero value is not usable; New makes one.
type Feed struct {
	Commits *Spool

	mu   sync.Mutex
	live *World

	past past

	telling sync.Mutex
	readers map[chan struct{}]struct{}
}

// New begins with an empty log.
func New(commits *Spool) *Feed {
	return &Feed{Commits: commits, live: NewWorld(), readers: make(map[chan struct{}]struct{})}
}

// Take folds the next commit in and tells the pages. One that is known already changes nothing.
func (f *Feed) Take(r eventlog.Record) error {
	if r.Seq <= f.Commits.Head() {
		return nil
	}
	if err := f.Commits.Append(r); err != nil {
		return err
	}
	f.mu.Lock()
	f.live.Apply(r)
	f.mu.Unlock()
	f.tell()
	return nil
}

// Now calls fn with the present. fn keeps nothing of it.
func (f *Feed) Now(fn func(*World) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fn(f.live)
}

// Commit calls fn with the place of a commit in the log, or with that of the last one, and with nothing of what the log came to. It
// waits for nobody and nobody waits for it, however long fn looks through the log.
func (f *Feed) Commit(seq uint64, past bool, fn func(*World) error) error {
	head := f.Commits.Head()
	switch {
	case !past:
		seq = head
	case seq > head:
		return beyond(seq, head)
	}
	w := NewWorld()
	w.Seq, w.Stored = seq, f.Commits.Stored(seq)
	return fn(w)
}

func beyond(seq, head uint64) error {
	return fmt.Errorf("%w: commit %d, the last one is %d", ErrNotFound, seq, head)
}

// At calls fn with what the log came to at a commit: what a replay of the log up to there gives. fn keeps nothing of it.
func (f *Feed) At(seq uint64, fn func(*World) error) error {
	head := f.Commits.Head()
	if seq > head {
		return beyond(seq, head)
	}
	return f.past.at(f.Commits, seq, fn)
}

// Follow gives a channel that receives when there is more, until stop is called. A reader that is slow misses nothing but the number
// of changes: it is told once of all that happened since it looked.
func (f *Feed) Follow() (more <-chan struct{}, stop func(), err error) {
	f.telling.Lock()
	defer f.telling.Unlock()
	if len(f.readers) >= Readers {
		return nil, nil, ErrBusy
	}
	c := make(chan struct{}, 1)
	f.readers[c] = struct{}{}
	return c, func() {
		f.telling.Lock()
		defer f.telling.Unlock()
		delete(f.readers, c)
	}, nil
}

func (f *Feed) tell() {
	f.telling.Lock()
	defer f.telling.Unlock()
	for c := range f.readers {
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last time
		}
	}
}
