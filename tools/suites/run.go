package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// result is one run of a suite.
type result struct {
	suite  string
	failed bool
	took   time.Duration
	cpu    time.Duration // of it and of every process that it waited for
	load   float64       // of the machine, a mean over its last minute
}

// logs is the folder with the whole output of every suite, below the checkout.
const logs = "test/.run/suites"

// turn is one of the rounds in which the suites run.
type turn struct {
	label    string // "2 of 10"
	rotation string // which share of the long matrices is taken
}

// perform runs suites in their order: those of the stack in lanes, everything else alone.
func (o *options) perform(ctx context.Context, suites []suite, out io.Writer) ([]result, error) {
	if err := os.MkdirAll(filepath.Join(o.root, logs), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for the output of the suites: %w", err)
	}
	rounds := max(o.repeat, 1)
	report := &reporter{out: out}
	for round := range rounds {
		r := turn{rotation: cmp.Or(o.rotation, strconv.FormatInt(o.day+int64(round), 10))}
		if o.repeat > 0 {
			r.label = fmt.Sprintf("%d of %d", round+1, rounds)
		}
		var wait sync.WaitGroup
		free := make(chan struct{}, o.lanes)
		for _, s := range suites {
			if s.group != groupStack {
				wait.Wait() // it runs alone
			}
			free <- struct{}{}
			if ctx.Err() != nil {
				break
			}
			wait.Go(func() {
				defer func() { <-free }()
				report.say(fmt.Sprintf("started %s %s\n", s.name, r.label))
				report.add(o.once(ctx, s, r))
			})
			if s.group != groupStack {
				wait.Wait()
			}
		}
		wait.Wait()
	}
	return report.results, nil
}

// ending is how many lines are printed of a story that failed.
const ending = 60

// once runs a suite once and returns what there is to say about it.
func (o *options) once(ctx context.Context, s suite, now turn) (result, string) {
	path := filepath.Join(o.root, logs, strings.NewReplacer("/", "-", " ", "-").Replace(strings.TrimSpace(s.name+" "+now.label))+".log")
	r := result{suite: s.name, failed: true}
	log, err := os.Create(path)
	if err != nil {
		return r, fmt.Sprintf("keeping the output of %s: %v\n", s.name, err)
	}
	defer log.Close()
	taken, err := s.part(now.rotation)
	if err != nil {
		return r, fmt.Sprintf("%-7s %s: %v\n", outcome(true), s.name, err)
	}
	tests := &testOutput{log: log}
	if taken.note != "" {
		tests.notes = append(tests.notes, taken.note)
	}
	cmd := exec.CommandContext(ctx, s.command[0], slices.Concat(s.command[1:], taken.arguments)...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "ROTATION="+taken.rotation)
	if o.repeat > 0 { // a result that Go remembers is no run
		cmd.Env = append(cmd.Env, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -count=1"))
	}
	cmd.Stdout, cmd.Stderr = log, log
	if s.events {
		cmd.Stdout = tests
	}
	// Its own process group, which is ended as a whole: test beds end with the process that started them, however it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.WaitDelay = 10 * time.Second
	started := time.Now()
	err = cmd.Run()
	tests.close()
	r.took, r.failed, r.load = time.Since(started), err != nil, load()
	if state := cmd.ProcessState; state != nil {
		r.cpu = state.UserTime() + state.SystemTime()
	}
	text := fmt.Sprintf("%-7s %s %s (%.0f s)\n", outcome(r.failed), s.name, now.label, r.took.Seconds())
	for _, line := range tests.notes {
		text += "        " + line + "\n"
	}
	if !r.failed {
		return r, text
	}
	switch {
	case s.events:
		text += tests.failures()
	case s.story:
		text += lastLines(readAll(path), ending)
	default:
		text += readAll(path)
	}
	return r, text + fmt.Sprintf("        %s: %v; all of its output is in %s\n", s.name, err, path)
}

func outcome(failed bool) string {
	if failed {
		return "FAILED"
	}
	return "ok"
}

// lastLines are the last n lines of a text, after a word on how many are left out.
func lastLines(text string, n int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= n {
		return text
	}
	return fmt.Sprintf("        ... %d lines before\n%s\n", len(lines)-n, strings.Join(lines[len(lines)-n:], ""))
}

func readAll(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error() + "\n"
	}
	return string(text)
}

// load is the machine's, or 0 where it cannot be read.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var mean float64
	if _, err := fmt.Sscan(string(text), &mean); err != nil {
		return 0
	}
	return mean
}

// reporter collects results, and writes what there is to say about each as a whole.
type reporter struct {
	mu      sync.Mutex
	out     io.Writer
	results []result
}

func (r *reporter) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, text)
}

func (r *reporter) add(one result, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, one)
	fmt.Fprint(r.out, text)
}
