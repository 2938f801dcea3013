package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/pinned"
	moves "scute.dev/mover/runner"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

const (
	startEvents = 1_000_000
	// startReplays is small, because each replay takes long.
	startReplays = 3
)

// measureStart measures a start of the daemon: opening the log and replaying it. The log repeats the saved histories of
// real moves, runs and remediations.
func measureStart(ctx context.Context, b *bench) error {
	dir := filepath.Join(b.dir, "start")
	b.say("filling a log with %d events of real moves, runs and remediations", startEvents)
	if err := fillHistories(ctx, b, dir, startEvents); err != nil {
		return err
	}
	var replayed []float64
	for range startReplays {
		took, err := startDaemon(ctx, dir)
		if err != nil {
			return fmt.Errorf("starting: %w", err)
		}
		replayed = append(replayed, took.Seconds())
	}
	b.figure("start.replay.time", median(replayed), "s")
	return nil
}

// startDaemon measures one start.
func startDaemon(ctx context.Context, dir string) (time.Duration, error) {
	runtime.GC()
	start := time.Now()
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	at, err := untilCaughtUp(ctx, aggregate.NewProjector(l, "start", newDomains(), slog.New(slog.DiscardHandler)))
	return at.Sub(start), err
}

// domains are the daemon's views of the domains that the log contains, which delete ended objects
// as the daemon's views do.
type domains struct {
	moves        *moves.Moves
	runs         *runs.Runs
	remediations *remediations.Remediations
}

func newDomains() *domains {
	return &domains{moves.NewMoves(), runs.NewRuns(), remediations.NewRemediations()}
}

// Apply implements aggregate.Applier.
func (v *domains) Apply(r eventlog.Record) error {
	if r.Seq%1024 == 0 {
		v.moves.Forget(16 << 20)
		v.runs.Forget(16 << 20)
		v.remediations.Forget(r.Stored)
	}
	switch r.Aggregate.Kind {
	case eventlog.KindMove:
		return v.moves.Apply(r)
	case eventlog.KindRun:
		return v.runs.Apply(r)
	default:
		return v.remediations.Apply(r)
	}
}

// fillHistories appends at least n events to a log, in one commit each, one object after the other. The IDs of the
// objects are new.
func fillHistories(ctx context.Context, b *bench, dir string, n int) error {
	var all []eventlog.Commit // one commit for each event
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
			for _, e := range events {
				a := eventlog.Aggregate{Kind: of.kind, ID: fmt.Sprintf("fleet/%d", objects)}
				all = append(all, eventlog.Commit{Aggregate: a, Events: []eventlog.Event{e}})
			}
			objects++
		}
	}
	last := make(map[eventlog.Aggregate]uint64)
	return fillWith(ctx, b, dir, n, func(i int, seq uint64) eventlog.Commit {
		c := all[i%len(all)]
		c.Aggregate.ID = fmt.Sprintf("%s-%d", c.Aggregate.ID, seq-uint64(i%len(all))) // the object's history begins there
		c.ID, c.Expected = fmt.Sprintf("%s/%d", c.Aggregate.ID, i), last[c.Aggregate]
		last[c.Aggregate] = seq
		return c
	})
}
