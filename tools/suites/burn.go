package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
)

// burnArgument makes this program burn a core.
const burnArgument = "burn-a-core"

// burn keeps one core busy until in ends, which it does when the process that holds its other end
// is gone, however it went.
func burn(in io.Reader) {
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end too
		ended.Store(true)
	}()
	for !ended.Load() { // to spin is what it is for
	}
}

// ignite starts processes that burn a core each. They end with extinguish, or with this process.
func ignite(n int) (extinguish func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	var ends []func()
	extinguish = func() {
		for _, end := range ends {
			end()
		}
	}
	for range n {
		cmd := exec.Command(program, burnArgument)
		in, err := cmd.StdinPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			extinguish()
			return nil, fmt.Errorf("starting a process that burns a core: %w", err)
		}
		ends = append(ends, func() {
			_ = in.Close()
			_ = cmd.Wait()
		})
	}
	return extinguish, nil
}
