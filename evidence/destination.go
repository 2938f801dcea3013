package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"scute.dev/eventlog/seal"
)

// Publication is a checkpoint to publish.
type Publication struct {
	seal.Checkpoint
	// Signed is the checkpoint as a signed note. Key verifies the signature.
	Signed []byte
	Key    seal.PublicKey
	At     time.Time
	Tree   *seal.Tree
}

// Destination stores checkpoints at a place where a process that writes to the log cannot change
// them.
type Destination interface {
	// Name returns the name of the destination, for messages.
	Name() string
	// Last returns the newest checkpoint in the destination as a signed note. It returns nil if there
	// is none, or if the destination does not return checkpoints.
	Last(ctx context.Context) ([]byte, error)
	// Publish adds a checkpoint to the destination. It returns errInconsistent if the checkpoint does
	// not continue the destination's last checkpoint.
	Publish(ctx context.Context, p Publication) error
}

var errInconsistent = errors.New("the log is not consistent with the published checkpoint")

// checkPublication reports whether last, the destination's last checkpoint, is the checkpoint to
// publish (same). It returns an error if the checkpoint must not be published there.
func checkPublication(p Publication, last []byte) (same bool, err error) {
	if len(last) == 0 {
		return false, nil
	}
	before, err := seal.OpenCheckpoint(last, p.Key)
	switch {
	case errors.Is(err, seal.ErrSignature):
		return false, fmt.Errorf("%w: the published checkpoint is of another log or another key: %w", errInconsistent, err)
	case err != nil:
		return false, fmt.Errorf("%w: the published checkpoint cannot be read: %w", errInconsistent, err)
	case before == p.Checkpoint:
		return true, nil
	case before.Size > p.Size:
		return false, fmt.Errorf("%w: the published checkpoint covers %d commits, but the log has %d: commits were lost", errInconsistent, before.Size, p.Size)
	}
	ok, err := seal.Continues(p.Tree, before, p.Checkpoint)
	if err == nil && !ok {
		err = fmt.Errorf("%w: commits up to %d were changed after they were sealed", errInconsistent, before.Size)
	}
	return false, err
}

const checkpointsFile = "checkpoints"

// Folder is a Destination that stores checkpoints in a folder, which should be on another volume
// than the log. It contains every checkpoint, and the hashes with which a change in the log can be
// located.
type Folder struct{ Path string }

// Name implements Destination.
func (f *Folder) Name() string { return "folder " + f.Path }

// Last implements Destination.
func (f *Folder) Last(context.Context) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(f.Path, checkpointsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	notes := seal.SplitNotes(text)
	if len(notes) == 0 {
		return nil, nil
	}
	return notes[len(notes)-1], nil
}

// Publish implements Destination.
func (f *Folder) Publish(_ context.Context, p Publication) error {
	if err := os.MkdirAll(f.Path, 0o750); err != nil {
		return err
	}
	if err := p.Tree.CopyTo(filepath.Join(f.Path, seal.HashesFile)); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(f.Path, checkpointsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640) //nolint:gosec // auditors read it
	if err != nil {
		return fmt.Errorf("writing the checkpoint: %w", err)
	}
	_, err = out.Write(append(p.Signed, '\n'))
	return errors.Join(err, out.Sync(), out.Close())
}
