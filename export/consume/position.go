package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"scute.dev/eventlog"
	"scute.dev/internal/atomicfile"
)

// Position is the progress of a consumer: the commits of a log up to a sequence were delivered.
type Position struct {
	// LogID is empty at the beginning.
	LogID    string `json:"logID"`
	Sequence uint64 `json:"sequence"`
	// Commit identifies the commit at Sequence, in the form SEQUENCE/FINGERPRINT. If the SEQUENCE in
	// it differs from Sequence, a user has moved the position, and Commit is ignored.
	Commit string `json:"commit,omitempty"`
	// Since is for a consumer that computes a state from events. It is the sequence after which such a
	// consumer must read again after a restart. A Consumer does not use it.
	Since uint64 `json:"since,omitempty"`
}

// ErrRolledBack is returned if the log no longer has the last delivered commit, because the log was
// restored from an older backup and then received other commits.
var ErrRolledBack = errors.New("the log went back before the position, and has another commit there now")

// PositionAfter returns the position after a commit.
func PositionAfter(logID string, r eventlog.Record) Position {
	return Position{LogID: logID, Sequence: r.Seq, Commit: commitPrefix(r.Seq) + r.Fingerprint()}
}

func commitPrefix(seq uint64) string { return strconv.FormatUint(seq, 10) + "/" }

// ReadAfter returns the sequence after which the log must be read. If the position identifies the
// last delivered commit, this commit is read again, so that Check can compare it.
func (p Position) ReadAfter() uint64 {
	if p.hasCommit() {
		return p.Sequence - 1
	}
	return p.Sequence
}

// Check returns ErrRolledBack if r, the log's commit at Sequence, is not the commit that was
// delivered last.
func (p Position) Check(r eventlog.Record) error {
	if p.hasCommit() && PositionAfter(p.LogID, r).Commit != p.Commit {
		return fmt.Errorf("commit %d: %w", r.Seq, ErrRolledBack)
	}
	return nil
}

func (p Position) hasCommit() bool {
	return p.Sequence > 0 && strings.HasPrefix(p.Commit, commitPrefix(p.Sequence))
}

// Store stores the position of one consumer.
type Store interface {
	// Load returns the position that was saved last; the zero Position if there is none.
	Load(ctx context.Context) (Position, error)
	Save(ctx context.Context, p Position) error
}

// File is a Store in a file, which Save replaces atomically.
type File string

// Load implements Store.
func (f File) Load(context.Context) (p Position, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return Position{}, fmt.Errorf("reading the position in the log from %s: %w", f, err)
	}
	return p, nil
}

// Save implements Store.
func (f File) Save(_ context.Context, p Position) error {
	data, err := json.Marshal(p)
	if err == nil {
		err = atomicfile.WriteBytes(string(f), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the position in the log to %s: %w", f, err)
	}
	return nil
}
