package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scute.dev/eventlog"
)

// lockFile is held with flock while a process has the folder open: the server itself has no lock, and two of them on
// one folder would destroy the log. The kernel frees it when the process ends, however it ends.
const lockFile = "scute.lock"

// lockFolder takes the folder for this process, or fails with ErrLocked naming the process that has it.
func lockFolder(dir string) (*os.File, error) {
	f, err := lock(dir, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return f, nil
}

// lockToRead keeps the folder as it is while it is copied. It leaves the number of the last holder, so that a process which wants to
// write waits for the copy (see flock) and does not fail.
func lockToRead(dir string) (*os.File, error) { return lock(dir, syscall.LOCK_SH) }

func lock(dir string, how int) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the folder: %w", err)
	}
	if err := flock(f, how); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		return nil, fmt.Errorf("%w: %s is held by process %d; stop it, or use its log over the network", eventlog.ErrLocked, path, readPID(f))
	}
	return f, nil
}

// flock takes the lock, or fails with EWOULDBLOCK at once while its holder lives. The lock of a holder that was killed
// may outlive it for a moment: a child that it was just starting has the file until it becomes another program.
func flock(f *os.File, how int) error {
	for deadline := time.Now().Add(lingers); ; time.Sleep(lingers / 500) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) || !isGone(readPID(f)) {
			return err
		}
	}
}

// lingers is the longest wait for the lock of a dead process.
const lingers = 5 * time.Second

// isGone reports whether no process has the number. 0, a number that could not be read, belongs to a process that is about to write it.
func isGone(pid int) bool {
	return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func readPID(f *os.File) int {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	return pid
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
