package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"scute.dev/eventlog/embedded"
)

// serveArg makes this program serve a log to another process of it, so that the two can be measured separately.
const serveArg = "-serve"

// serve serves the log in dir until stdin is closed.
func serve(ctx context.Context, dir string) error {
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		return err
	}
	fmt.Println(l.URL())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return l.Close()
}

// startServer starts serve in a child process.
func startServer(ctx context.Context, dir string) (url string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, self, serveArg, dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { _ = stdin.Close(); return cmd.Wait() }
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", nil, fmt.Errorf("the serving process ended: %w", stop())
	}
	return strings.TrimSpace(line), stop, nil
}
