package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"scute.dev/test/scuted"
	"scute.dev/test/soak"
)

// keeper keeps scuted running on one side. It restarts it when it exits, as a kubelet does.
type keeper struct {
	in      *scuted.Installation
	options scuted.DaemonOptions
	report  *report
	broken  func(error)

	mu     sync.Mutex
	daemon *scuted.Daemon
	down   bool // a fault keeps it stopped
	closed bool
	lives  []*soak.Life
	killed int // by faults
	ended  int // by itself
	ping   chan struct{}
}

// keep starts scuted and restarts it until ctx ends.
func keep(ctx context.Context, k *keeper) error {
	k.ping = make(chan struct{}, 1)
	if err := k.start(); err != nil {
		return err
	}
	go k.watch(ctx)
	return nil
}

func (k *keeper) start() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.down {
		return nil
	}
	d, err := k.in.Start(k.options)
	if err != nil {
		return err
	}
	k.daemon = d
	k.lives = append(k.lives, &soak.Life{Side: k.side(), Started: time.Now()})
	return nil
}

func (k *keeper) side() string { return k.in.Side.Name() }

func (k *keeper) watch(ctx context.Context) {
	for {
		k.mu.Lock()
		d := k.daemon
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-d.Done():
		}
		k.fell(d)
		for { // until it may run again
			k.mu.Lock()
			down, closed := k.down, k.closed
			k.mu.Unlock()
			if closed {
				return
			}
			if !down {
				break
			}
			select {
			case <-ctx.Done():
				return
			case <-k.ping:
			}
		}
		if err := k.start(); err != nil {
			k.broken(fmt.Errorf("scuted: %w", err))
			return
		}
	}
}

// fell reports how a process ended. An exit without a fault is reported as one by itself.
func (k *keeper) fell(d *scuted.Daemon) {
	k.mu.Lock()
	by := "by itself"
	switch {
	case k.closed:
		k.mu.Unlock()
		return
	case k.down:
		by = "killed"
		k.killed++
	default:
		k.ended++
	}
	k.mu.Unlock()
	last := tail(d.Log())
	k.report.say("scuted", "%s of %s ended (%s, status %d): %s", "scuted", k.side(), by, d.ExitCode(), last)
	const panicked = 2
	if d.ExitCode() == panicked {
		k.broken(fmt.Errorf("crash: scuted of %s ended with a panic: see %s", k.side(), d.Log()))
	}
}

// kill kills the process with SIGKILL and keeps it stopped until release.
func (k *keeper) kill(ctx context.Context) error {
	k.mu.Lock()
	k.down = true
	d := k.daemon
	k.mu.Unlock()
	return d.Kill(ctx)
}

func (k *keeper) release() {
	k.mu.Lock()
	k.down = false
	k.mu.Unlock()
	select {
	case k.ping <- struct{}{}:
	default:
	}
}

// signal sends a signal to the current process.
func (k *keeper) signal(s syscall.Signal) (*scuted.Daemon, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.daemon, syscall.Kill(k.daemon.PID(), s)
}

// stop stops the process permanently.
func (k *keeper) stop(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	d := k.daemon
	k.mu.Unlock()
	if d == nil {
		return nil
	}
	if d.Exited() == nil {
		_ = syscall.Kill(d.PID(), syscall.SIGCONT) // a fault may have stopped it; if it has exited meanwhile, Stop notices
	}
	return d.Stop(ctx)
}

// sampled adds a sample of the current process to its life.
func (k *keeper) sampled(u soak.Usage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	life := k.lives[len(k.lives)-1]
	life.Samples = append(life.Samples, u)
}

// ready reports whether the current process runs and is ready.
func (k *keeper) ready(ctx context.Context) bool {
	k.mu.Lock()
	d := k.daemon
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return d != nil && d.WaitReady(ctx) == nil
}

// tail returns the last line of a file.
func tail(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return lines[len(lines)-1]
}
