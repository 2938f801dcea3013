package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	label  string // of the turn
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

// perform runs suites in their order: those on the real stack in lanes, everything else alone.
func (o *options) perform(ctx context.Context, suites []suite, out io.Writer) ([]result, error) {
	if err := os.MkdirAll(filepath.Join(o.root, logs), 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for the output of the suites: %w", err)
	}
	rounds := max(o.repeat, 1)
	report := &reporter{out: out, running: map[string]time.Time{}}
	stop := report.watch()
	defer stop()
	for round := range rounds {
		r := turn{rotation: cmp.Or(o.rotation, strconv.FormatInt(o.day+int64(round), 10))}
		if o.repeat > 0 {
			r.label = fmt.Sprintf("%d of %d", round+1, rounds)
		}
		var wait sync.WaitGroup
		free := make(chan struct{}, o.lanes)
		for _, s := range suites {
			alone := s.group != groupStack && s.group != groupPromises
			if alone {
				wait.Wait()
			}
			free <- struct{}{}
			if ctx.Err() != nil {
				break
			}
			wait.Go(func() {
				defer func() { <-free }()
				report.start(strings.TrimSpace(s.name + " " + r.label))
				report.add(o.once(ctx, s, r))
			})
			if alone {
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
	r := result{suite: s.name, label: now.label, failed: true}
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
	// Its own process group, which is ended as a whole: test beds end with the process that started
	// them, however it ends.
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
	running map[string]time.Time // since when
	results []result
}

// still is the interval at which the reporter prints what is running.
const still = 30 * time.Second

// watch prints what is running, and for how long, until stop is called.
func (r *reporter) watch() (stop func()) {
	tick, done := time.NewTicker(still), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				r.mu.Lock()
				for _, name := range slices.Sorted(maps.Keys(r.running)) {
					fmt.Fprintf(r.out, "running %s %s\n", name, time.Since(r.running[name]).Round(time.Second))
				}
				r.mu.Unlock()
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
	}
}

func (r *reporter) start(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[name] = time.Now()
	fmt.Fprintf(r.out, "started %s\n", name)
}

func (r *reporter) add(one result, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, strings.TrimSpace(one.suite+" "+one.label))
	r.results = append(r.results, one)
	fmt.Fprint(r.out, text)
}
