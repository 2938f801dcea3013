package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/seal"
)

const (
	sealedCommits = 50_000
	verifyRounds  = 15
	sealRounds    = 41
	sealEvery     = time.Second
	sealedMillion = 10_000_000
	exportRounds  = 5
)

// measureEvidence measures the group "evidence".
func measureEvidence(ctx context.Context, b *bench) error {
	for _, m := range []func(context.Context, *bench) error{measureSealMemory, measureVerify, measureSealedAppend, measureExport} {
		if err := m(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// measureVerify compares the verification of commits in memory with SHA-256 over the same bytes. The rounds alternate,
// and the figure is the median of their ratios.
func measureVerify(_ context.Context, b *bench) error {
	messages, leaves := make([]eventlog.Record, sealedCommits), make([][]byte, sealedCommits)
	tree, err := seal.OpenTree(filepath.Join(b.dir, "verify"), 0)
	if err != nil {
		return err
	}
	defer tree.Close()
	var h seal.Hasher
	for i := range messages {
		c := commit(i%aggregates, i, 0)
		e := c.Events[0]
		messages[i] = eventlog.NewRecord(uint64(i+1), e.Time, c.Aggregate.Subject(), map[string][]string{ //nolint:gosec // not negative
			"Nats-Msg-Id": {c.ID}, "Nats-Expected-Last-Subject-Sequence": {fmt.Sprint(i)}, "ce-specversion": {"1.0"}, "ce-id": {c.ID + "/0"},
			"ce-source": {"scute.dev/" + c.Aggregate.String()}, "ce-type": {e.Type}, "ce-subject": {c.Aggregate.ID}, "ce-time": {e.Time.Format(time.RFC3339Nano)},
			"ce-datacontenttype": {"application/json"}, "ce-actor": {e.Actor}, "ce-correlation": {e.Correlation},
		}, e.Data)
		leaves[i] = seal.AppendLeaf(nil, messages[i])
		if err := tree.Append(h.Hash(messages[i])); err != nil {
			return err
		}
	}
	want := seal.Checkpoint{Size: tree.Size()}
	if want.Root, err = tree.Root(want.Size); err != nil {
		return err
	}
	b.say("verify: %d rounds of %d commits each way", verifyRounds, sealedCommits)
	var ratios, rates []float64
	for range verifyRounds {
		start := time.Now()
		for _, leaf := range leaves {
			_ = sha256.Sum256(leaf)
		}
		plain := time.Since(start)
		start = time.Now()
		v := seal.NewVerifier(want, nil, nil)
		for _, m := range messages {
			if err := v.Add(m); err != nil {
				return err
			}
		}
		took := time.Since(start)
		if r, err := v.Report(); err != nil || !r.Intact() {
			return errors.Join(errors.New("the commits are not found intact"), err)
		}
		ratios, rates = append(ratios, plain.Seconds()/took.Seconds()), append(rates, sealedCommits/took.Seconds())
	}
	b.figure("seal.verify.ratio", median(ratios), "ratio")
	b.figure("seal.verify.rate", median(rates), "commits/s")
	return nil
}

// measureSealedAppend compares the rate of appends to a log that is sealed every second, sixty times as often as by
// default, with that to an unsealed log.
func measureSealedAppend(ctx context.Context, b *bench) error {
	sealed, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(b.dir, "sealed")})
	if err != nil {
		return err
	}
	defer sealed.Close()
	stop, err := sealInBackground(ctx, filepath.Join(b.dir, "sealed", seal.Folder), sealed)
	if err != nil {
		return err
	}
	defer stop()
	unsealed, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(b.dir, "unsealed")})
	if err != nil {
		return err
	}
	defer unsealed.Close()
	sides := [2]*writers{appenders(ctx, sealed), appenders(ctx, unsealed)}
	b.say("append, sealed each second: %d rounds of %d each way", sealRounds, singleAppends)
	var ratios []float64
	for round := range sealRounds {
		var rate [2]float64
		for turn := range 2 {
			who := (round + turn) % 2
			if rate[who], err = sides[who].round(1, singleAppends); err != nil {
				return err
			}
		}
		ratios = append(ratios, rate[0]/rate[1])
	}
	b.figure("seal.append.ratio", median(ratios), "ratio")
	return nil
}

// appenders returns writers that append to the log with Append.
func appenders(ctx context.Context, l *eventlog.Log) *writers {
	return &writers{last: map[int]uint64{}, prepare: func(c eventlog.Commit) func(uint64) (uint64, error) {
		return func(expected uint64) (uint64, error) {
			c.Expected = expected
			r, err := l.Append(ctx, c)
			return r.Seq, err
		}
	}}
}

func sealInBackground(ctx context.Context, dir string, l *eventlog.Log) (stop func(), err error) {
	key, err := seal.NewKey()
	if err != nil {
		return nil, err
	}
	s, err := seal.OpenSealer(dir, l, key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, _, err := s.Seal(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(sealEvery):
			}
		}
	}()
	return func() { cancel(); <-done; _ = s.Close() }, nil
}

// measureSealMemory measures how much memory the tree of ten million commits uses.
func measureSealMemory(_ context.Context, b *bench) error {
	b.say("memory of the seal of %d commits", sealedMillion)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tree, err := seal.OpenTree(filepath.Join(b.dir, "memory"), 0)
	if err != nil {
		return err
	}
	defer tree.Close()
	leaf := tlog.Hash(sha256.Sum256(nil))
	for range sealedMillion {
		if err := tree.Append(leaf); err != nil {
			return err
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.figure("seal.memory", float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/1024, "KiB") //nolint:gosec // a heap is small
	runtime.KeepAlive(tree)
	return nil
}

// measureExport measures how fast `scutectl log export` reads an embedded log and writes it as JSON Lines, which are
// discarded.
func measureExport(ctx context.Context, b *bench) error {
	dir := filepath.Join(b.dir, "export")
	b.say("export: %d rounds of %d events", exportRounds, sealedCommits)
	if err := fill(ctx, b, dir, sealedCommits, aggregates); err != nil {
		return err
	}
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer l.Close()
	var rates []float64
	for range exportRounds {
		w, err := eventlog.NewExportWriter(io.Discard, eventlog.ExportHead{LogID: l.ID(), Last: sealedCommits})
		if err != nil {
			return err
		}
		start := time.Now()
		if err := errors.Join(l.Scan(ctx, w.Write), w.Close()); err != nil {
			return err
		}
		rates = append(rates, sealedCommits/time.Since(start).Seconds())
	}
	b.figure("export.events_per_second", median(rates), "events/s")
	return nil
}
