package drop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// spool keeps what is uploaded in a file without a name, because a server gives up a restore in which it hears nothing for five seconds, and between
// two commits that are kept there may be millions that are not.
type spool struct{ file *os.File }

func newSpool(ctx context.Context, write func(ctx context.Context, w io.Writer) error) (*spool, error) {
	file, err := os.CreateTemp("", "scute-drop-*")
	if err != nil {
		return nil, fmt.Errorf("making a file for what is kept: %w; nothing was changed", err)
	}
	s := &spool{file}
	if err = os.Remove(file.Name()); err == nil {
		err = write(ctx, file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing what is kept to a file for temporary files: %w; nothing was changed", err), file.Close())
	}
	return s, nil
}

// copyTo writes it all.
func (s *spool) copyTo(ctx context.Context, w io.Writer) error {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading what is kept: %w", err)
	}
	source := readerFunc(func(b []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return s.file.Read(b)
	})
	if _, err := io.Copy(w, source); err != nil {
		return fmt.Errorf("copying what is kept: %w", err)
	}
	return nil
}

// readerFunc is an io.Reader.
type readerFunc func(b []byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func (s *spool) close() error { return s.file.Close() }
