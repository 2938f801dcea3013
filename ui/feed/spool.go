package feed

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// Spool is a copy of a log's commits, from the first one on. One goroutine appends commits and many read them.
type Spool struct {
	file    *os.File
	removed bool

	mu      sync.RWMutex
	ends    []int64 // end offset of the line of the commit with sequence i+1
	stored  []int64 // nanoseconds since 1970
	of      []int32 // number of each commit's aggregate
	all     []eventlog.Aggregate
	numbers map[eventlog.Aggregate]int32
	commits [][]uint64 // sequences, by the number of the aggregate
}

// NewSpool creates an empty spool in the directory for temporary files. If the system permits it, the file is unlinked immediately, so that it
// disappears with the process, however the process ends.
func NewSpool() (*Spool, error) {
	file, err := os.CreateTemp("", "scute-ui-*")
	if err != nil {
		return nil, fmt.Errorf("creating a file for the commits of the log: %w", err)
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

// Append appends the next commit.
func (s *Spool) Append(r eventlog.Record) error {
	if head := s.Head(); r.Seq != head+1 {
		return fmt.Errorf("the log is incomplete: commit %d is followed by commit %d", head, r.Seq)
	}
	line, err := eventlog.EncodeLine(r)
	if err != nil {
		return fmt.Errorf("storing commit %d: %w", r.Seq, err)
	}
	begin := s.end(r.Seq - 1)
	if _, err := s.file.WriteAt(append(line, '\n'), begin); err != nil {
		return fmt.Errorf("storing commit %d: %w", r.Seq, err)
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

// number returns the number of an aggregate, and assigns one to a new aggregate.
func (s *Spool) number(a eventlog.Aggregate) int32 {
	n, known := s.numbers[a]
	if !known {
		n = int32(len(s.all)) //nolint:gosec // a log has fewer than 2^31 commits
		s.numbers[a], s.all, s.commits = n, append(s.all, a), append(s.commits, nil)
	}
	return n
}

// Aggregate returns the aggregate of a commit, zero if the commit does not exist.
func (s *Spool) Aggregate(seq uint64) eventlog.Aggregate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 || seq > uint64(len(s.of)) {
		return eventlog.Aggregate{}
	}
	return s.all[s.of[seq-1]]
}

// Bytes returns the size of all commits up to a sequence.
func (s *Spool) Bytes(seq uint64) int64 { return s.end(min(seq, s.Head())) }

// Head returns the sequence of the last commit, 0 if there is none.
func (s *Spool) Head() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return uint64(len(s.ends))
}

// end returns the end offset of a commit's line.
func (s *Spool) end(seq uint64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 {
		return 0
	}
	return s.ends[seq-1]
}

// Stored returns when a commit was stored, zero if the commit does not exist.
func (s *Spool) Stored(seq uint64) time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 || seq > uint64(len(s.stored)) {
		return time.Time{}
	}
	return time.Unix(0, s.stored[seq-1]).UTC()
}

// At returns the sequence of the last commit stored at or before a time, 0 if there is none.
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

// Sequences returns the sequences of an aggregate's commits up to a sequence, oldest first.
func (s *Spool) Sequences(a eventlog.Aggregate, until uint64) []uint64 {
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

// Read returns the commit of a sequence.
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
	r, err := eventlog.DecodeLine(data)
	if err != nil {
		return eventlog.Record{}, fmt.Errorf("reading commit %d: %w", seq, err)
	}
	return r, nil
}

// Replay calls fn with each commit after a sequence, up to another one.
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
