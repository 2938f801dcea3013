package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/drop"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	"scute.dev/internal/projection"
	"scute.dev/internal/retention"
	"scute.dev/internal/usage"
	"scute.dev/mover"
	"scute.dev/projector"
	"scute.dev/remediator"
	"scute.dev/workflow"
)

const (
	startEvents = 1_000_000
	startRounds = 11
	// startReplays are fewer, because each takes so long.
	startReplays = 3

	closedEpochs = 10
	epochEvents  = 50_000
)

// measureStart compares a start of the daemon (open the log, restore the view, catch up) with a snapshot and without. The log
// holds the saved histories of real moves, runs and remediations again and again.
func measureStart(ctx context.Context, b *bench) error {
	dir, file := filepath.Join(b.dir, "start"), filepath.Join(b.dir, "snapshots", "daemon")
	b.say("filling a log with %d events of real moves, runs and remediations", startEvents)
	if err := fillHistories(ctx, b, dir, startEvents, 0, nil); err != nil {
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

// measureEpochs compares a start with a snapshot of a log of ten closed epochs and an open one with that of a log of the open one alone.
// Each epoch is of the same size and has its own objects, which ended there, in the closed ones two years ago.
func measureEpochs(ctx context.Context, b *bench) error {
	b.say("filling %d epochs with %d events each of real moves, runs and remediations, and a log of one", closedEpochs+1, epochEvents)
	var dirs, files [2]string
	for i, closed := range []int{closedEpochs, 0} {
		dirs[i], files[i] = filepath.Join(b.dir, fmt.Sprint("epochs-", closed)), filepath.Join(b.dir, "snapshots", fmt.Sprint("epochs-", closed))
		for n := range closed + 1 {
			if n > 0 {
				if err := closeEpoch(ctx, dirs[i]); err != nil {
					return err
				}
			}
			ago := time.Duration(0)
			if n < closed {
				ago = 2 * 366 * 24 * time.Hour
			}
			if err := fillHistories(ctx, b, dirs[i], epochEvents, ago, over); err != nil {
				return err
			}
		}
		if _, err := startDaemon(ctx, dirs[i], files[i]); err != nil {
			return fmt.Errorf("start that takes a snapshot: %w", err)
		}
	}
	var sizes [2]float64
	for i, file := range files {
		stat, err := os.Stat(file)
		if err != nil {
			return err
		}
		sizes[i] = float64(stat.Size())
	}
	var ratios, times []float64
	for range startRounds {
		var took [2]time.Duration
		for i := range took {
			var err error
			if took[i], err = startDaemon(ctx, dirs[i], files[i]); err != nil {
				return fmt.Errorf("start from a snapshot: %w", err)
			}
		}
		ratios, times = append(ratios, took[0].Seconds()/took[1].Seconds()), append(times, took[0].Seconds())
	}
	b.figure("start.epochs.ratio", median(ratios), "ratio")
	b.figure("start.epochs.time", median(times), "s")
	b.figure("start.epochs.size", sizes[0]/sizes[1], "ratio")
	return measureDropped(ctx, b, dirs, files)
}

// measureDropped drops the closed epochs of the first log, and compares the starts again.
func measureDropped(ctx context.Context, b *bench, dirs, files [2]string) error {
	b.say("dropping %d epochs", closedEpochs)
	if err := dropEpochs(ctx, dirs[0], filepath.Join(b.dir, "archive"), closedEpochs); err != nil {
		return err
	}
	if _, err := startDaemon(ctx, dirs[0], files[0]); err != nil {
		return fmt.Errorf("start that takes a snapshot: %w", err)
	}
	var ratios []float64
	for range startRounds {
		var took [2]time.Duration
		for i := range took {
			var err error
			if took[i], err = startDaemon(ctx, dirs[i], files[i]); err != nil {
				return fmt.Errorf("start from a snapshot: %w", err)
			}
		}
		ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
	}
	b.figure("start.dropped.ratio", median(ratios), "ratio")
	return nil
}

func dropEpochs(ctx context.Context, dir, archive string, through int) (err error) {
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := backup.Write(ctx, l, archive, backup.Options{Now: time.Now()}); err != nil {
		return err
	}
	plan, err := drop.Prepare(ctx, l, archive, through, func() drop.Judge { return retention.NewJudge() }, nil)
	if err != nil {
		return err
	}
	return plan.Carry(ctx, "bench", "a measurement", time.Now(), drop.Waits{})
}

func closeEpoch(ctx context.Context, dir string) error {
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return err
	}
	return errors.Join(l.CloseEpoch(ctx, eventlog.Closing{Actor: "bench", Time: time.Now()}), l.Close())
}

// over says that the object of a history ended with it, and that nothing of it counts years later.
func over(kind eventlog.Kind, events []eventlog.Event) bool {
	switch kind {
	case eventlog.KindMove:
		s := new(mover.State)
		return applied(mover.NewCatalog(), s.Apply, events) && s.Finished()
	case eventlog.KindRun:
		s := new(workflow.State)
		return applied(workflow.NewCatalog(), s.Apply, events) && s.Finished()
	default:
		s := new(remediator.State)
		return applied(remediator.NewCatalog(), s.Apply, events) && remediator.Forget(s, time.Now().AddDate(2, 0, 0))
	}
}

func applied[E any](catalog *eventlog.Catalog[E], apply func(E, time.Time), events []eventlog.Event) bool {
	for _, stored := range events {
		e, err := catalog.Decode(stored)
		if err != nil {
			return false
		}
		apply(e, stored.Time)
	}
	return true
}

// fillHistories appends n events or a few more to a log, as if some time ago: one commit each, one object after the other, none of which
// the log has. Only those of the objects that are wanted; nil is all.
func fillHistories(ctx context.Context, b *bench, dir string, n int, ago time.Duration, want func(eventlog.Kind, []eventlog.Event) bool) error {
	var all []eventlog.Commit // what each event is about, and the event
	objects := 0
	for _, of := range []struct {
		domain string
		kind   eventlog.Kind
	}{{"mover", eventlog.KindMove}, {"workflow", eventlog.KindRun}, {"remediator", eventlog.KindRemediation}} {
		files, err := filepath.Glob(filepath.Join("..", of.domain, "testdata", "histories", "*.jsonl"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("package %s has no saved histories: run this in the root of the repository: %w", of.domain, err)
		}
		for _, file := range files {
			events, err := pinned.Load(file)
			if err != nil {
				return err
			}
			if want != nil && !want(of.kind, events) {
				continue
			}
			for _, e := range events {
				e.Time = e.Time.Add(-ago)
				a := eventlog.Aggregate{Kind: of.kind, ID: fmt.Sprintf("fleet/%d", objects)}
				all = append(all, eventlog.Commit{Aggregate: a, Events: []eventlog.Event{e}})
			}
			objects++
		}
	}
	last := make(map[eventlog.Aggregate]uint64)
	return fillWith(ctx, b, dir, n, func(i int, seq uint64) eventlog.Commit {
		c := all[i%len(all)]
		c.Aggregate.ID = fmt.Sprintf("%s-%d", c.Aggregate.ID, seq-uint64(i%len(all))) // its history begins there
		c.ID, c.Expected = fmt.Sprintf("%s/%d", c.Aggregate.ID, i), last[c.Aggregate]
		last[c.Aggregate] = seq
		return c
	})
}
