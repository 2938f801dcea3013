package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"scute.dev/eventlog"
	"scute.dev/projector"
)

const (
	startRounds = 11
	// startAggregates is the same for both logs: a snapshot is as large as the view, not as the log.
	startAggregates = 1_000
	// startTail is how many commits follow the snapshot.
	startTail = 50
)

// measureStart compares a start (open the log, restore the snapshot, catch up) at 1,000,000 events with one at 1,000.
func measureStart(ctx context.Context, b *bench) error {
	logs := []struct {
		events int
		dir    string
		took   []float64
	}{{events: 1_000_000}, {events: 1_000}}
	for i := range logs {
		o := &logs[i]
		o.dir = filepath.Join(b.dir, fmt.Sprintf("start-%d", o.events))
		b.say("filling a log with %d events over %d aggregates", o.events, startAggregates)
		if err := fill(ctx, b, o.dir, o.events, startAggregates); err != nil {
			return err
		}
		if _, err := startProjector(ctx, o.dir); err != nil {
			return err
		}
		if err := appendTail(ctx, o.dir); err != nil {
			return err
		}
	}
	for range startRounds {
		for i := range logs {
			runtime.GC()
			took, err := startProjector(ctx, logs[i].dir)
			if err != nil {
				return fmt.Errorf("start: %w", err)
			}
			logs[i].took = append(logs[i].took, took.Seconds())
		}
	}
	long, short := median(logs[0].took), median(logs[1].took)
	b.figure("log.start.snapshot.ratio", long/short, "ratio")
	b.figure("log.start.snapshot.time", long*1000, "ms")
	return nil
}

// startProjector is one start; at its end it takes a snapshot if enough is new.
func startProjector(ctx context.Context, dir string) (time.Duration, error) {
	start := time.Now()
	l, err := eventlog.OpenEmbedded(ctx, eventlog.EmbeddedOptions{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	p := projector.New(l, newTally, projector.Options{
		Name: "tally", Version: 1, Snapshot: filepath.Join(dir, "snapshots", "tally"), Every: 20 * startTail,
	})
	err = untilCaughtUp(ctx, p)
	return time.Since(start), err
}

// appendTail adds the commits that a start has to replay.
func appendTail(ctx context.Context, dir string) error {
	l, err := eventlog.OpenEmbedded(ctx, eventlog.EmbeddedOptions{Dir: dir})
	if err != nil {
		return err
	}
	defer l.Close()
	for n := range startTail {
		if _, err := l.Append(ctx, commit(startAggregates, n, previous(ctx, l, n))); err != nil {
			return err
		}
	}
	return nil
}

// previous is the sequence of the tail's last commit, 0 before the first.
func previous(ctx context.Context, l *eventlog.Log, n int) uint64 {
	if n == 0 {
		return 0
	}
	head, err := l.Head(ctx)
	if err != nil {
		return 0 // the append will fail and say why
	}
	return head
}
