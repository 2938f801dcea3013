package feed

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
	file    *os.File
	removed bool

	mu      sync.RWMutex
	ends    []int64 // where the line of the commit with sequence i+1 ends
	stored  []int64 // nanoseconds since 1970
	of      []int32 // which of the aggregates each is about
	all     []eventlog.Aggregate
	numbers map[eventlog.Aggregate]int32
	commits [][]uint64 // by the number of the aggregate
}

// NewSpool creates an empty spool in the directory for temporary files. Where the system permits it, the file is unlinked at once, so that it
// disappears with the process, however that ends.
func NewSpool() (*Spool, error) {
	file, err := os.CreateTemp("", "scute-ui-*")
	if err != nil {
		return nil, fmt.Errorf("making a file for the commits of the log: %w", err)
	}
	s := &Spool{file: file, numbers: make(map[eventlog.Aggregate]int32)}
	s.removed = os.Remove(file.Name()) == nil
	return s, nil
}

// Close removes the file.
func (s *Spool) Close() error {
	err := s.file.Close()
	if !s.removed {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}

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
	s.stored = append(s.stored, r.Stored.UnixNano())
	n := s.number(r.Aggregate)
	s.of = append(s.of, n)
	s.commits[n] = append(s.commits[n], r.Seq)
	return nil
}

// number is that of an aggregate, which is a new one if it is not known.
func (s *Spool) number(a eventlog.Aggregate) int32 {
	n, known := s.numbers[a]
	if !known {
		n = int32(len(s.all)) //nolint:gosec // a log has fewer than 2^31 commits
		s.numbers[a], s.all, s.commits = n, append(s.all, a), append(s.commits, nil)
	}
	return n
}

// Aggregate is what a commit is about; zero for one that is not there.
func (s *Spool) Aggregate(seq uint64) eventlog.Aggregate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 || seq > uint64(len(s.of)) {
		return eventlog.Aggregate{}
	}
	return s.all[s.of[seq-1]]
}

// Bytes is how large the commits up to one are.
func (s *Spool) Bytes(seq uint64) int64 { return s.end(min(seq, s.Head())) }

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
	return time.Unix(0, s.stored[seq-1]).UTC()
}

// At is the sequence of the last commit that was stored at a time or before, 0 if there is none.
func (s *Spool) At(t time.Time) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, _ := slices.BinarySearchFunc(s.stored, t, func(stored int64, t time.Time) int {
		if time.Unix(0, stored).After(t) {
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
	n, known := s.numbers[a]
	if !known {
		return nil
	}
	all := s.commits[n]
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
