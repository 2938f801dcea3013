package evidence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scute.dev/eventlog/seal"
)

// checkpointsFile contains all checkpoints that were published to a folder, one after the other.
const checkpointsFile = "checkpoints"

// Folder is a place on a volume other than the log's. It contains every checkpoint, and the hashes for locating a change.
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
