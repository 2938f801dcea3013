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

// lockFile is locked with flock while a process has the folder open. The server does not lock the
// folder, and two servers on one folder would destroy the log. The kernel releases the lock when
// the process ends. The file is never removed, because otherwise two processes could lock two files
// of the same name.
const lockFile = "scute.lock"

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

// lockToRead locks the folder while it is copied. It leaves the PID of the last holder in the file,
// so that a process that opens the log waits for the copy (see flock) instead of failing.
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

// flock acquires the lock. While the holder of the lock runs, it fails at once with EWOULDBLOCK.
// The lock of a killed holder may remain for a moment, because a child process that the holder was
// starting has the file open until it calls exec.
func flock(f *os.File, how int) error {
	for deadline := time.Now().Add(staleLockTimeout); ; time.Sleep(staleLockTimeout / 500) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) || !hasExited(readPID(f)) {
			return err
		}
	}
}

// staleLockTimeout limits the wait for a lock whose holder has died.
const staleLockTimeout = 5 * time.Second

// hasExited reports whether the process has exited. It returns false for PID 0, which means that
// the holder of the lock has not written its PID yet.
func hasExited(pid int) bool {
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

// CopyFolder copies the server's files of an embedded log, so that the copy can be examined. It
// fails with ErrLocked if a process has the log open.
func CopyFolder(dir, to string) error {
	lock, err := lockToRead(dir)
	if err != nil {
		return fmt.Errorf("copying the event log: %w", err)
	}
	err = os.CopyFS(filepath.Join(to, serverFolder), os.DirFS(filepath.Join(dir, serverFolder)))
	if err = errors.Join(err, lock.Close()); err != nil {
		return fmt.Errorf("copying the event log in %s: %w", dir, err)
	}
	return nil
}

const serverFolder = "jetstream"
