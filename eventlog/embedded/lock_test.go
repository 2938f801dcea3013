package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"scute.dev/eventlog"
)

// TestALockThatOutlivesItsHolderIsWaitedFor checks that a lock is waited for if its owner is dead. A process that is
// killed while it forks leaves its lock to the child until the child calls exec.
func TestALockThatOutlivesItsHolderIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		holder int
		want   error
	}{
		{"the holder is dead", exitedPID(t), nil},
		{"the holder lives", os.Getpid(), eventlog.ErrLocked},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			inherited, err := lockFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, lockFile), fmt.Appendf(nil, "%d\n", c.holder), 0o600); err != nil {
				t.Fatal(err)
			}
			child := exec.Command("sleep", "0.3")
			child.ExtraFiles = []*os.File{inherited}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = child.Wait() }()
			if err := inherited.Close(); err != nil {
				t.Fatal(err)
			}
			f, err := lockFolder(dir)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil {
				f.Close()
			}
		})
	}
}

// TestACopyIsWaitedFor checks that a writer waits while the folder is copied, and a copy of a folder in use is refused.
func TestACopyIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, lockFile), fmt.Appendf(nil, "%d\n", exitedPID(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	copying, err := lockToRead(dir)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "0.3") // it holds the lock while it runs
	child.ExtraFiles = []*os.File{copying}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	if err := copying.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := lockFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockToRead(dir); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("lockToRead of a folder in use = %v, want ErrLocked", err)
	}
	f.Close()
}

func exitedPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}
