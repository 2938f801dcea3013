package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Spec describes the program to run.
type Spec struct {
	Path string
	Args []string
	// Log is the file to which standard output and standard error are appended.
	Log string
	// Env is added to the environment of this process.
	Env []string
}

// Process is a running child in its own process group, so that its parent handles Ctrl-C in the terminal first.
type Process struct {
	spec Spec
	cmd  *exec.Cmd
	done chan struct{}
}

// Start runs the program. On Linux the kernel kills it when this process ends.
func Start(spec Spec) (*Process, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(spec.Path), err)
	}
	p := &Process{spec: spec, cmd: exec.Command(spec.Path, spec.Args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr, p.cmd.Env = attributes(), append(os.Environ(), spec.Env...)

	started := make(chan error, 1)
	go func() {
		defer log.Close()
		// The kernel sends the parent-death signal when the thread that forked ends, not the process. So the goroutine
		// keeps its thread for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := p.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = p.cmd.Wait() // the result is in ProcessState
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Path, err)
	}
	return p, nil
}

// PID returns the process ID, which is also the ID of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the path of the file with the process's output.
func (p *Process) Log() string { return p.spec.Log }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited returns an error with the program and its log if the process has ended, and nil otherwise.
func (p *Process) Exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended (%v): see %s", filepath.Base(p.spec.Path), p.cmd.ProcessState, p.spec.Log)
	default:
		return nil
	}
}

// ExitCode returns the exit status, or -1 if a signal ended the process or it still runs.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Killed reports whether SIGKILL ended the process.
func (p *Process) Killed() bool {
	select {
	case <-p.done:
		status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	default:
		return false
	}
}

// Kill kills the process group with SIGKILL and waits until the process has ended. It does nothing if the process has
// already ended.
func (p *Process) Kill(ctx context.Context) error {
	select {
	case <-p.done:
		return nil // the ID may have been reused
	default:
	}
	if err := syscall.Kill(-p.PID(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing %s (process %d): %w", filepath.Base(p.spec.Path), p.PID(), err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s (process %d) to end: %w", filepath.Base(p.spec.Path), p.PID(), ctx.Err())
	}
}
