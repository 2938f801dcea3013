package exec

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// runGroup runs a command in its own process group. When ctx ends, the group gets SIGTERM, and its
// remaining processes get SIGKILL after grace.
func runGroup(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	cmd.SysProcAttr = groupAttributes()
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// Keep this thread: the child gets its parent-death signal when the thread that started it
		// ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	group := -cmd.Process.Pid
	_ = syscall.Kill(group, syscall.SIGTERM) // fails if the group has ended
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	ended := done
	var err error
	for {
		select {
		case err = <-ended:
			ended = nil
		case <-look.C:
		case <-deadline.C:
			_ = syscall.Kill(group, syscall.SIGKILL)
			if ended != nil {
				err = <-ended
			}
			return errors.Join(ctx.Err(), err)
		}
		if ended == nil && syscall.Kill(group, 0) != nil { // no process of the group is left
			return errors.Join(ctx.Err(), err)
		}
	}
}
