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

// Spool is a copy of a log's commits, beginning with the first. One goroutine may write while
// others read.
type Spool struct {
	file    *os.File
	removed bool

	mu      sync.RWMutex
	commits []commit // the commit with sequence s has the index s-1
	of      map[eventlog.Aggregate]*commitsOf
}

type commit struct {
	end    int64 // offset of the end of the commit's line
	stored int64 // nanoseconds since 1970
	of     *commitsOf
}

type commitsOf struct {
	aggregate eventlog.Aggregate
	sequences []uint64
}

// NewSpool creates an empty spool in the directory for temporary files. Where the system permits
// it, the file is unlinked immediately, so that it disappears even if the process is killed.
func NewSpool() (*Spool, error) {
	file, err := os.CreateTemp("", "scute-ui-*")
	if err != nil {
		return nil, fmt.Errorf("creating a file for the commits of the log: %w", err)
	}
	s := &Spool{file: file, of: make(map[eventlog.Aggregate]*commitsOf)}
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

// Append appends the next commit. It fails if the sequence is not the next one.
func (s *Spool) Append(r eventlog.Record) error {
	if head := s.Head(); r.Seq != head+1 {
		return fmt.Errorf("the log is incomplete: commit %d is followed by commit %d", head, r.Seq)
	}
	line, err := eventlog.EncodeLine(r)
	if err != nil {
		return fmt.Errorf("storing commit %d: %w", r.Seq, err)
	}
	begin := s.commit(r.Seq - 1).end
	if _, err := s.file.WriteAt(append(line, '\n'), begin); err != nil {
		return fmt.Errorf("storing commit %d: %w", r.Seq, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of[r.Aggregate]
	if of == nil {
		of = &commitsOf{aggregate: r.Aggregate}
		s.of[r.Aggregate] = of
	}
	of.sequences = append(of.sequences, r.Seq)
	s.commits = append(s.commits, commit{end: begin + int64(len(line)) + 1, stored: r.Stored.UnixNano(), of: of})
	return nil
}

// commit returns the position of a commit. It returns zero for a commit that does not exist.
func (s *Spool) commit(seq uint64) commit {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if seq == 0 || seq > uint64(len(s.commits)) {
		return commit{}
	}
	return s.commits[seq-1]
}

// Aggregate returns the aggregate of a commit, or zero if the commit does not exist.
func (s *Spool) Aggregate(seq uint64) eventlog.Aggregate {
	if of := s.commit(seq).of; of != nil {
		return of.aggregate
	}
	return eventlog.Aggregate{}
}

// Bytes returns the size of all commits up to a sequence.
func (s *Spool) Bytes(seq uint64) int64 { return s.commit(min(seq, s.Head())).end }

// Head returns the sequence of the last commit, or 0.
func (s *Spool) Head() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return uint64(len(s.commits))
}

// Stored returns when a commit was stored, or zero if the commit does not exist.
func (s *Spool) Stored(seq uint64) time.Time {
	c := s.commit(seq)
	if c == (commit{}) {
		return time.Time{}
	}
	return time.Unix(0, c.stored).UTC()
}

// At returns the sequence of the last commit stored at or before a time, or 0.
func (s *Spool) At(t time.Time) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, _ := slices.BinarySearchFunc(s.commits, t, func(c commit, t time.Time) int {
		if time.Unix(0, c.stored).After(t) {
			return 1
		}
		return -1
	})
	return uint64(i) //nolint:gosec // an index is not negative
}

// Sequences returns the sequences of an aggregate's commits up to until, oldest first.
func (s *Spool) Sequences(a eventlog.Aggregate, until uint64) []uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	of := s.of[a]
	if of == nil {
		return nil
	}
	i, _ := slices.BinarySearch(of.sequences, until+1)
	return slices.Clone(of.sequences[:i])
}

// Read returns the commit with this sequence.
func (s *Spool) Read(seq uint64) (eventlog.Record, error) {
	if seq == 0 || seq > s.Head() {
		return eventlog.Record{}, fmt.Errorf("the log has no commit %d", seq)
	}
	begin := s.commit(seq - 1).end
	data := make([]byte, s.commit(seq).end-begin)
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

// Replay calls fn with the commits after the sequence after, up to and including the sequence
// until.
func (s *Spool) Replay(after, until uint64, fn func(eventlog.Record) error) error {
	until = min(until, s.Head())
	if after >= until {
		return nil
	}
	begin := s.commit(after).end
	lines := bufio.NewReaderSize(io.NewSectionReader(s.file, begin, s.commit(until).end-begin), 256<<10)
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
