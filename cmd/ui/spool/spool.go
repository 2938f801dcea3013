package spool

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/export"
)

// Spool is a copy of a log's commits, from the first one on. Commits are appended by one goroutine and read by many.
type Spool struct {
	file *os.File

	mu      sync.RWMutex
	ends    []int64 // where the line of the commit with sequence i+1 ends
	stored  []time.Time
	commits map[eventlog.Aggregate][]uint64
}

// New makes an empty one in the folder for temporary files.
func New() (*Spool, error) {
	file, err := os.CreateTemp("", "scute-ui-*")
	if err != nil {
		return nil, fmt.Errorf("making a file for the commits of the log: %w", err)
	}
	return &Spool{file: file, commits: make(map[eventlog.Aggregate][]uint64)}, nil
}

// Close removes the file.
func (s *Spool) Close() error { return errors.Join(s.file.Close(), os.Remove(s.file.Name())) }

// Append takes the next commit.
func (s *Spool) Append(r eventlog.Record) error {
	if head := s.Head(); r.Seq != head+1 {
		return fmt.Errorf("the log is not whole: after commit %d comes %d", head, r.Seq)
	}
	line, err := json.Marshal(export.LineOf(r))
	if err != nil {
		return fmt.Errorf("keeping commit %d: %w", r.Seq, err)
	}
	begin := s.end(r.Seq - 1)
	if _, err := s.file.WriteAt(append(line, '\n'), begin); err != nil {
		return fmt.Errorf("keeping commit %d: %w", r.Seq, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, begin+int64(len(line))+1)
	s.stored = append(s.stored, r.Stored)
	s.commits[r.Aggregate] = append(s.commits[r.Aggregate], r.Seq)
	return nil
}

// Head is the sequence of the last commit, 0 without one.
func (s *Spool) Head() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return uint64(len(s.ends))
}

// end is where the line of a commit ends.
func (s *Spool) end(seq uint64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 {
		return 0
	}
	return s.ends[seq-1]
}

// Stored is when a commit was stored; zero for one that is not there.
func (s *Spool) Stored(seq uint64) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 || seq > uint64(len(s.stored)) {
		return time.Time{}
	}
	return s.stored[seq-1]
}

// At is the sequence of the last commit that was stored at a time or before, 0 if there is none.
func (s *Spool) At(t time.Time) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, _ := slices.BinarySearchFunc(s.stored, t, func(stored, t time.Time) int {
		if stored.After(t) {
			return 1
		}
		return -1
	})
	return uint64(i) //nolint:gosec // an index is not negative
}

// Of are the sequences of the commits on an aggregate up to one, the oldest first.
func (s *Spool) Of(a eventlog.Aggregate, until uint64) []uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := s.commits[a]
	i, _ := slices.BinarySearch(all, until+1)
	return slices.Clone(all[:i])
}

// Read is the commit of a sequence.
func (s *Spool) Read(seq uint64) (eventlog.Record, error) {
	if seq == 0 || seq > s.Head() {
		return eventlog.Record{}, fmt.Errorf("the log has no commit %d", seq)
	}
	begin := s.end(seq - 1)
	data := make([]byte, s.end(seq)-begin)
	if _, err := s.file.ReadAt(data, begin); err != nil {
		return eventlog.Record{}, fmt.Errorf("reading commit %d: %w", seq, err)
	}
	return record(seq, data)
}

func record(seq uint64, data []byte) (eventlog.Record, error) {
	line, err := export.Decode(data)
	if err != nil {
		return eventlog.Record{}, fmt.Errorf("reading commit %d: %w", seq, err)
	}
	return line.Record(), nil
}

// Replay hands the commits after a sequence up to another to fn.
func (s *Spool) Replay(after, until uint64, fn func(eventlog.Record) error) error {
	until = min(until, s.Head())
	if after >= until {
		return nil
	}
	begin := s.end(after)
	lines := bufio.NewReaderSize(io.NewSectionReader(s.file, begin, s.end(until)-begin), 256<<10)
	for seq := after + 1; seq <= until; seq++ {
		data, err := lines.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("reading commit %d: %w", seq, err)
		}
		r, err := record(seq, data)
		if err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}
