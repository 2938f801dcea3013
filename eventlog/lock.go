package eventlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockFile is held with flock while a process has the folder open: the server itself has no lock, and two of them on
// one folder would destroy the log. The kernel frees it when the process ends, however it ends.
const lockFile = "scute.lock"

// lockFolder takes the folder for this process, or fails with ErrLocked naming the process that has it.
func lockFolder(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		holder, _ := io.ReadAll(io.LimitReader(f, 32))
		return nil, fmt.Errorf("%w: %s is held by process %s; stop it, or use its log over the network", ErrLocked, path, strings.TrimSpace(string(holder)))
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// unlock frees the folder. The file stays: removing it would let two processes lock two files of one name.
func unlock(f *os.File) error {
	if err := f.Close(); err != nil {
		return fmt.Errorf("unlocking the folder: %w", err)
	}
	return nil
}
