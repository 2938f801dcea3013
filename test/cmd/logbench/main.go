package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// group is a set of figures that are measured together.
type group struct {
	name    string
	what    string
	measure func(ctx context.Context, b *bench) error
}

func groups() []group {
	return []group{
		{"log", "the event log: append, replay", measureLog},
		{"start", "a start of the daemon", measureStart},
		{"evidence", "the seals: verification, and what sealing costs", measureEvidence},
		{"workflow", "the workflow engine: what it adds to its log, and how it grows", measureWorkflow},
	}
}

// bench has the outputs of a group and its folder.
type bench struct {
	out, progress io.Writer
	dir           string // removed at the end
	start         time.Time
}

// figure prints one result.
func (b *bench) figure(name string, value float64, unit string) {
	format := "%.2f"
	if value >= 100 {
		format = "%.0f"
	}
	fmt.Fprintf(b.out, "bench %s "+format+" %s\n", name, value, unit)
}

// say reports progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs %s\n", time.Since(b.start).Seconds(), fmt.Sprintf(format, args...))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) == 3 && os.Args[1] == serveArg {
		err = serve(ctx, os.Args[2])
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures the named groups, or all.
func run(ctx context.Context, names []string, out, progress io.Writer) error {
	for _, name := range names {
		if !slices.ContainsFunc(groups(), func(g group) bool { return g.name == name }) {
			return fmt.Errorf("unknown group %q; there is %s, and on the real stack remediation (make bench GROUP=remediation)", name, strings.Join(groupNames(), ", "))
		}
	}
	dir, err := os.MkdirTemp("", "scute-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &bench{out: out, progress: progress, dir: dir, start: time.Now()}
	for _, g := range groups() {
		if len(names) > 0 && !slices.Contains(names, g.name) {
			continue
		}
		b.say("group %s: %s", g.name, g.what)
		if err := g.measure(ctx, b); err != nil {
			return fmt.Errorf("group %s: %w", g.name, err)
		}
	}
	return nil
}

func groupNames() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.name)
	}
	return names
}
