package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unfinished is the suffix of a file that is being written. CreateTemp replaces the star.
const unfinished = ".tmp*"

// Write replaces the file at path with the output of write, readable by its owner only (mode 0600),
// and syncs it to disk. If it returns an error, the old file is unchanged.
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
	return Sync(filepath.Dir(path))
}

// WriteBytes replaces the file at path with data, as Write does.
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Clean removes the files that crashed writers of path left. No process may be writing it.
func Clean(path string) error {
	left, err := filepath.Glob(path + unfinished)
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// IsUnfinished reports whether name is a file that a crashed writer of file left.
func IsUnfinished(name, file string) bool {
	matched, err := filepath.Match(file+unfinished, name)
	return err == nil && matched
}

// Sync syncs a file, or a folder with the names of its files, to disk.
func Sync(path string) error {
	d, err := os.Open(path) //nolint:gosec // the caller's path
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("writing %s to the disk: %w", path, err)
	}
	return nil
}
