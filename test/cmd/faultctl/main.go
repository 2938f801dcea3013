// Command faultctl is scutectl with a fault point: it kills itself at the n-th commit. It sends
// itself SIGKILL before the commit is sent or after it was stored. Everything else is the real
// scutectl.
//
//	SCUTE_FAULT=after:3        kills itself right after the third commit
//	SCUTE_FAULT=before:1       kills itself before the first
//	SCUTE_FAULT_JOURNAL=file   records a line for each commit that was stored
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"scute.dev/aggregate"
	"scute.dev/cmd/ctl/app" //nolint:depguard // it is that command, with its log wrapped
	"scute.dev/cmd/ctl/cli" //nolint:depguard // the same
	"scute.dev/eventlog"
)

func main() {
	p, err := newPoint(os.Getenv("SCUTE_FAULT"), os.Getenv("SCUTE_FAULT_JOURNAL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "faultctl:", err)
		os.Exit(2)
	}
	options := app.Options{WrapLog: func(next aggregate.Log) aggregate.Log { return &log{next, p} }}
	os.Exit(app.RunWith(context.Background(), cli.System("scutectl", "fault"), options, os.Args[1:]))
}

// point counts commits and kills the process at the selected one.
type point struct {
	mu      sync.Mutex
	count   int
	at      int
	before  bool
	journal *os.File
}

func newPoint(fault, journal string) (*point, error) {
	p := &point{}
	if fault != "" {
		when, number, _ := strings.Cut(fault, ":")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || when != "before" && when != "after" {
			return nil, fmt.Errorf("SCUTE_FAULT is %q: it must be before:N or after:N", fault)
		}
		p.at, p.before = n, when == "before"
	}
	if journal != "" {
		var err error
		if p.journal, err = os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, err
		}
	}
	return p, nil
}

type log struct {
	aggregate.Log
	point *point
}

// Append holds the lock, so that the commits of one process are counted in the order in which they are stored.
func (l *log) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	p := l.point
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count++; p.count == p.at && p.before {
		die()
	}
	receipt, err := l.Log.Append(ctx, c)
	if err == nil && p.journal != nil {
		fmt.Fprintln(p.journal, c.Events[0].Type)
	}
	if p.count == p.at {
		die()
	}
	return receipt, err
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
