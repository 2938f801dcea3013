package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unfinished is what follows the name of a file that is being written. CreateTemp replaces the star.
const unfinished = ".tmp*"

// Write replaces the file at path by what write writes. When it returns without an error the new file is on the disk. Only
// its owner may read it (mode 0600). On an error the file that was there is as it was.
func Write(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+unfinished)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// WriteBytes is Write of data that is there already.
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Clean removes what processes that crashed in Write have left beside path. Nobody else may be writing the file.
func Clean(path string) error {
	left, err := filepath.Glob(path + unfinished)
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// IsUnfinished says that a name is of what a process that crashed in Write has left behind of a file.
func IsUnfinished(name, file string) bool {
	matched, err := filepath.Match(file+unfinished, name)
	return err == nil && matched
}

// syncFolder writes the new name of the file to the disk.
func syncFolder(path string) error {
	d, err := os.Open(path) //nolint:gosec // the caller's own folder
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("writing folder %s to the disk: %w", path, err)
	}
	return nil
}
