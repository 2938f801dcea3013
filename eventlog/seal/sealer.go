package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/internal/atomicfile"
)

const checkpointFile = "checkpoint"

// CheckpointPath returns the path of the last checkpoint of the log in a folder.
func CheckpointPath(dir string) string { return filepath.Join(dir, Folder, checkpointFile) }

// Log contains the methods of the sealed log that a Sealer needs.
type Log interface {
	ID() string
	Replay(ctx context.Context, after uint64, fn func(eventlog.Record) error) (uint64, error)
}

// Sealer keeps the tree of a log up to date. It is not safe for concurrent use.
type Sealer struct {
	log    Log
	dir    string
	key    Key
	tree   *Tree
	hasher Hasher
}

// OpenSealer opens the tree in a folder up to its last checkpoint. A tree that does not match its
// checkpoint, or has none, is created again from the log.
func OpenSealer(dir string, log Log, key Key) (*Sealer, error) {
	s := &Sealer{log: log, dir: dir, key: key}
	last, err := s.last()
	if err != nil {
		return nil, err
	}
	if s.tree, err = OpenTree(dir, last.Size); err != nil {
		return nil, err
	}
	if root, err := s.tree.Root(s.tree.Size()); err == nil && s.tree.Size() == last.Size && (last.Size == 0 || root == last.Root) {
		return s, nil
	}
	if err := s.tree.Close(); err != nil {
		return nil, err
	}
	if s.tree, err = OpenTree(dir, 0); err != nil {
		return nil, err
	}
	return s, nil
}

// last returns the last checkpoint. It returns the zero Checkpoint if there is none, or if the last
// one is of another log or key.
func (s *Sealer) last() (Checkpoint, error) {
	key, err := s.key.Public(s.log.ID())
	if err != nil {
		return Checkpoint{}, err
	}
	signed, err := os.ReadFile(filepath.Join(s.dir, checkpointFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Checkpoint{}, fmt.Errorf("reading the last checkpoint: %w", err)
	}
	c, err := OpenCheckpoint(signed, key)
	if err != nil {
		return Checkpoint{}, nil //nolint:nilerr // the tree is created again
	}
	return c, nil
}

// Seal adds the new commits of the log to the tree, and returns the new checkpoint and its signed
// note. The cost depends only on the number of new commits.
func (s *Sealer) Seal(ctx context.Context) (Checkpoint, []byte, error) {
	before := s.tree.Size()
	if _, err := s.log.Replay(ctx, before, func(r eventlog.Record) error { return s.tree.Append(s.hasher.Hash(r)) }); err != nil {
		return Checkpoint{}, nil, fmt.Errorf("sealing the log after %d: %w", before, err)
	}
	c := Checkpoint{LogID: s.log.ID(), Size: s.tree.Size()}
	var err error
	if c.Root, err = s.tree.Root(c.Size); err != nil {
		return c, nil, err
	}
	signed, err := c.Sign(s.key)
	if err == nil {
		err = s.tree.Sync()
	}
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(s.dir, checkpointFile), signed)
	}
	if err != nil {
		return c, nil, fmt.Errorf("sealing the log: %w", err)
	}
	return c, signed, nil
}

// Tree returns the sealed tree. It is valid until Close.
func (s *Sealer) Tree() *Tree { return s.tree }

// Close closes the tree.
func (s *Sealer) Close() error { return s.tree.Close() }
