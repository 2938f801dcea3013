package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	"scute.dev/internal/projection"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

const (
	startEvents = 1_000_000
	startRounds = 11
	// startReplays are fewer, because each takes so long.
	startReplays = 3
)

// measureStart compares a start of the daemon (open the log, restore the view, catch up) with a snapshot and without. The log
// holds the saved histories of real moves, runs and remediations again and again.
func measureStart(ctx context.Context, b *bench) error {
	dir, file := filepath.Join(b.dir, "start"), filepath.Join(b.dir, "snapshots", "daemon")
	b.say("filling a log with %d events of real moves, runs and remediations", startEvents)
	if err := fillHistories(ctx, b, dir, startEvents); err != nil {
		return err
	}
	var replayed, restored []float64
	for range startReplays {
		took, err := startDaemon(ctx, dir, "")
		if err != nil {
			return fmt.Errorf("start without a snapshot: %w", err)
		}
		replayed = append(replayed, took.Seconds())
	}
	if _, err := startDaemon(ctx, dir, file); err != nil { // it has none yet, and takes one
		return fmt.Errorf("start that takes a snapshot: %w", err)
	}
	stat, err := os.Stat(file)
	if err != nil {
		return err
	}
	for range startRounds {
		took, err := startDaemon(ctx, dir, file)
		if err != nil {
			return fmt.Errorf("start from a snapshot: %w", err)
		}
		restored = append(restored, took.Seconds())
	}
	b.figure("start.replay.time", median(replayed), "s")
	b.figure("start.snapshot.time", median(restored), "s")
	b.figure("start.snapshot.ratio", median(restored)/median(replayed), "ratio")
	b.figure("start.snapshot.size", float64(stat.Size())/(1<<20), "MiB")
	return nil
}

// startDaemon is one start. Without a file it uses no snapshot and takes none.
func startDaemon(ctx context.Context, dir, file string) (time.Duration, error) {
	runtime.GC()
	start := time.Now()
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	p := projector.New(l, projection.New(usage.Limits{}), projector.Options{Name: projection.Name, Snapshot: file})
	at, err := untilCaughtUp(ctx, p)
	return at.Sub(start), err
}

// fillHistories makes a log of n events or a few more: one commit each, one object after the other.
func fillHistories(ctx context.Context, b *bench, dir string, n int) error {
	var all []eventlog.Commit // what each event is about, and the event
	objects := 0
	for _, of := range []struct {
		domain string
		kind   eventlog.Kind
	}{{"mover", eventlog.KindMove}, {"workflow", eventlog.KindRun}, {"remediator", eventlog.KindRemediation}} {
		files, err := filepath.Glob(filepath.Join(of.domain, "testdata", "histories", "*.jsonl"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("package %s has no saved histories: run this in the root of the repository: %w", of.domain, err)
		}
		for _, file := range files {
			events, err := pinned.Load(file)
			if err != nil {
				return err
			}
			for _, e := range events {
				a := eventlog.Aggregate{Kind: of.kind, ID: fmt.Sprintf("fleet/%d", objects)}
				all = append(all, eventlog.Commit{Aggregate: a, Events: []eventlog.Event{e}})
			}
			objects++
		}
	}
	last := make(map[eventlog.Aggregate]uint64)
	return fillWith(ctx, b, dir, n, func(i int) eventlog.Commit {
		c := all[i%len(all)]
		c.Aggregate.ID = fmt.Sprintf("%s-%d", c.Aggregate.ID, i/len(all))
		c.ID, c.Expected = fmt.Sprintf("%s/%d", c.Aggregate.ID, i), last[c.Aggregate]
		last[c.Aggregate] = uint64(i + 1)
		return c
	})
}
