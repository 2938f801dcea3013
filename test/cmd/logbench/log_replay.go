package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

const (
	replayEvents = 1_000_000
	replayRounds = 5
)

// tally is the measured view: the number of facts of each type, and the last fact of each aggregate.
type tally struct {
	Types map[string]int  `json:"types"`
	Last  map[string]fact `json:"last"`
}

type fact struct {
	Seq  uint64          `json:"seq"`
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

func newTally() *tally { return &tally{Types: map[string]int{}, Last: map[string]fact{}} }

func (v *tally) Apply(r eventlog.Record) error {
	types := r.Types()
	for _, t := range types {
		v.Types[t]++
	}
	v.Last[r.Aggregate.ID] = fact{r.Seq, types[len(types)-1], r.Data()}
	return nil
}

// measureReplay compares a projector's replay of a million events with an ordered consumer that only counts them.
func measureReplay(ctx context.Context, b *bench) error {
	large, small := filepath.Join(b.dir, "large"), filepath.Join(b.dir, "small")
	b.say("filling a log with %d events over %d aggregates", replayEvents, aggregates)
	if err := fill(ctx, b, large, replayEvents, aggregates); err != nil {
		return err
	}
	if err := fill(ctx, b, small, replayEvents/10, aggregates); err != nil {
		return err
	}
	var ratios, rates []float64
	for round := range replayRounds {
		var rate [2]float64
		for turn := range 2 {
			var err error
			who := (round + turn) % 2
			runtime.GC()
			if who == 0 {
				rate[0], _, err = replayEmbedded(ctx, large, replayEvents)
			} else {
				rate[1], err = replayBare(ctx, large, replayEvents)
			}
			if err != nil {
				return fmt.Errorf("replay: %w", err)
			}
		}
		b.say("replay: projector %.0f/s, bare ordered consumer %.0f/s", rate[0], rate[1])
		ratios, rates = append(ratios, rate[0]/rate[1]), append(rates, rate[0])
	}
	b.figure("log.replay.ratio", median(ratios), "ratio")
	b.figure("log.replay.rate", median(rates), "events/s")

	return measureMemory(ctx, b, large, small)
}

// measureMemory compares the memory of replays of the large and the small log, with the same number of aggregates:
// first of the projector and its client alone, with the server in a separate process, and then with the embedded
// server.
func measureMemory(ctx context.Context, b *bench, large, small string) error {
	b.say("replay: memory")
	for _, mode := range []struct {
		name   string
		replay func(ctx context.Context, dir string, n uint64) (rate, peak float64, err error)
	}{{"log.replay.memory", replayRemote}, {"log.replay.embedded.memory", replayEmbedded}} {
		var peak [2]float64
		for i, of := range []struct {
			dir string
			n   uint64
		}{{large, replayEvents}, {small, replayEvents / 10}} {
			runtime.GC()
			var err error
			if _, peak[i], err = mode.replay(ctx, of.dir, of.n); err != nil {
				return fmt.Errorf("%s: %w", mode.name, err)
			}
		}
		b.figure(mode.name, peak[0]/peak[1], "ratio")
		b.figure(mode.name+".peak", peak[0]/(1<<20), "MiB")
	}
	return nil
}

// replayEmbedded replays with the server in this process.
func replayEmbedded(ctx context.Context, dir string, n uint64) (rate, peak float64, err error) {
	l, err := embedded.Open(ctx, embedded.Options{Dir: dir})
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	return replay(ctx, l, n)
}

// replayRemote replays with the server in a separate process.
func replayRemote(ctx context.Context, dir string, n uint64) (rate, peak float64, err error) {
	url, stop, err := startServer(ctx, dir)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	l, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: url})
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	return replay(ctx, l, n)
}

// replay returns the events per second, and the largest live heap at any garbage collection.
func replay(ctx context.Context, l *eventlog.Log, n uint64) (rate, peak float64, err error) {
	stopSampling := sampleHeap(&peak)
	defer stopSampling()
	start := time.Now()
	v := newTally()
	p := aggregate.NewProjector(l, "tally", v, slog.New(slog.DiscardHandler))
	if _, err := untilCaughtUp(ctx, p); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	stopSampling()
	total := 0
	for _, n := range v.Types {
		total += n
	}
	if seq := p.Position(); seq != n || uint64(total) != n {
		err = fmt.Errorf("the view is at %d with %d facts, not %d", seq, total, n)
	}
	return float64(n) / took.Seconds(), peak, err
}

// untilCaughtUp runs a projector until it has caught up, and then stops it.
func untilCaughtUp(ctx context.Context, p *aggregate.Projector) (at time.Time, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	select {
	case err := <-done:
		return at, err
	case <-p.CaughtUp():
		at = time.Now()
		cancel()
	}
	if err := <-done; !errors.Is(err, context.Canceled) {
		return at, err
	}
	return at, nil
}

// replayBare replays with the client's own ordered consumer and a handler that only counts.
func replayBare(ctx context.Context, dir string, n uint64) (float64, error) {
	raw, err := openRaw(dir, true)
	if err != nil {
		return 0, err
	}
	defer raw.close()
	start := time.Now()
	consumer, err := raw.js.OrderedConsumer(ctx, eventlog.StreamName, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return 0, err
	}
	var count atomic.Uint64
	done := make(chan struct{})
	consuming, err := consumer.Consume(func(jetstream.Msg) {
		if count.Add(1) == n {
			close(done)
		}
	})
	if err != nil {
		return 0, err
	}
	defer consuming.Stop()
	select {
	case <-done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return float64(n) / time.Since(start).Seconds(), nil
}

// sampleHeap records the largest live heap in peak until the returned function is called.
func sampleHeap(peak *float64) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			metrics.Read(sample)
			*peak = max(*peak, float64(sample[0].Value.Uint64()))
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	once := false
	return func() {
		if !once {
			once = true
			close(stop)
			<-stopped
		}
	}
}
