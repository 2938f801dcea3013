package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

const (
	appendRounds  = 61
	singleAppends = 250
	concurrent    = 32
	perWriter     = 20
)

// measureAppend compares Append with a publish of the same messages by the NATS client alone, on a stream and a server
// with the same configuration. The rounds alternate, and the figure is the median of their ratios.
func measureAppend(ctx context.Context, b *bench) error {
	logDir, rawDir := filepath.Join(b.dir, "append"), filepath.Join(b.dir, "append-raw")
	h, err := template(ctx, b)
	if err != nil {
		return err
	}
	if _, err := open(ctx, rawDir); err != nil {
		return err
	}
	raw, err := openRaw(rawDir, true)
	if err != nil {
		return err
	}
	defer raw.close()
	l, err := embedded.Open(ctx, embedded.Options{Dir: logDir})
	if err != nil {
		return err
	}
	defer l.Close()

	ours := &writers{last: map[int]uint64{}, prepare: func(c eventlog.Commit) func(uint64) (uint64, error) {
		return func(expected uint64) (uint64, error) {
			c.Expected = expected
			r, err := l.Append(ctx, c)
			return r.Seq, err
		}
	}}
	theirs := &writers{last: map[int]uint64{}, prepare: func(c eventlog.Commit) func(uint64) (uint64, error) {
		m := message(h, c)
		return func(expected uint64) (uint64, error) { return publish(ctx, raw.js, m, expected) }
	}}
	for _, mode := range []struct {
		name            string
		writers, writes int
	}{{"single", 1, singleAppends}, {"concurrent", concurrent, perWriter}} {
		b.say("append, %d at once: %d rounds of %d each way", mode.writers, appendRounds, mode.writers*mode.writes)
		var ratios, rates []float64
		for round := range appendRounds {
			var rate [2]float64
			for turn := range 2 {
				who := (round + turn) % 2 // the order alternates between rounds
				if rate[who], err = []*writers{ours, theirs}[who].round(mode.writers, mode.writes); err != nil {
					return fmt.Errorf("append, %s: %w", mode.name, err)
				}
			}
			ratios, rates = append(ratios, rate[0]/rate[1]), append(rates, rate[0])
		}
		b.figure("log.append."+mode.name+".ratio", median(ratios), "ratio")
		b.figure("log.append."+mode.name+".rate", median(rates), "commits/s")
	}
	return nil
}

// publish publishes a message with an expected sequence, as the client offers it.
func publish(ctx context.Context, js jetstream.JetStream, m *nats.Msg, expected uint64) (uint64, error) {
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(expected, 10)}
	pctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ack, err := js.PublishMsg(pctx, m)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// writers write commits to a thousand aggregates, each writer to its own.
type writers struct {
	prepare func(eventlog.Commit) func(expected uint64) (uint64, error)
	last    map[int]uint64
	written int
}

// round returns the commits per second. The commits are prepared before the clock starts.
func (w *writers) round(count, writes int) (float64, error) {
	const spread = 1_000
	type write struct {
		aggregate int
		do        func(uint64) (uint64, error)
	}
	work := make([][]write, count)
	last := make([]map[int]uint64, count)
	for i := range work {
		last[i] = map[int]uint64{}
		for n := range writes {
			a := (w.written*count+i+n*count)%(spread-spread%count) + 0
			work[i] = append(work[i], write{a, w.prepare(commit(a, w.written+n, 0))})
			last[i][a] = w.last[a]
		}
	}
	var g errgroup.Group
	start := time.Now()
	for i := range work {
		g.Go(func() error {
			for _, x := range work[i] {
				seq, err := x.do(last[i][x.aggregate])
				if err != nil {
					return err
				}
				last[i][x.aggregate] = seq
			}
			return nil
		})
	}
	err := g.Wait()
	took := time.Since(start)
	for _, m := range last {
		for a, seq := range m {
			w.last[a] = seq
		}
	}
	w.written += writes
	return float64(count*writes) / took.Seconds(), err
}
