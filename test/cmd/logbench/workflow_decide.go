package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/workflow"
	"scute.dev/workflow/runner"
	"scute.dev/workflow/task"
)

const (
	smallRun    = 1_000
	largeRun    = 100_000
	replayTasks = 50_000 // two events each
)

// lattice returns the needs of a task in a graph in which a task needs two earlier ones, a near and a distant one.
func lattice(i int) []v1alpha1.Need {
	if i < 2 {
		return chain(i)
	}
	needs := []v1alpha1.Need{{Task: name(i - 1 - i%7%i)}}
	if far := i / 2; far != i-1-i%7%i {
		needs = append(needs, v1alpha1.Need{Task: name(far), On: v1alpha1.OnCompletion})
	}
	return needs
}

// measureDecide measures decisions in memory: of one large run, and of many small ones with the same total number of
// tasks, so that both use as much memory.
func measureDecide(b *bench) error {
	b.say("decisions in runs of %d and %d tasks", smallRun, largeRun)
	small, large := graph(smallRun, lattice), graph(largeRun, lattice)
	var growth, cost []float64
	for range flowRounds {
		few, err := decideAll(small, largeRun/smallRun)
		if err != nil {
			return err
		}
		one, err := decideAll(large, 1)
		if err != nil {
			return err
		}
		growth, cost = append(growth, one/few), append(cost, one)
	}
	b.figure("workflow.decide.growth", median(growth), "ratio")
	b.figure("workflow.decide.cost", median(cost), "us/event")
	return nil
}

// decideAll simulates runs whose tasks all succeed, sixteen at once, and returns the microseconds per event.
func decideAll(d *workflow.Definition, runs int) (float64, error) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	states := make([]workflow.State, runs)
	for i := range states {
		for _, e := range append(workflow.Start(d, "", now), workflow.Claimed{Holder: "bench"}) {
			states[i].Apply(e, now)
		}
	}
	runtime.GC()
	events, start := 0, time.Now()
	for i := range states {
		n, err := play(&states[i], now)
		if err != nil {
			return 0, err
		}
		events += n
	}
	took := time.Since(start)
	for i := range states {
		if p := workflow.CurrentPhase(&states[i]); p != v1alpha1.RunSucceeded {
			return 0, fmt.Errorf("the run of %d tasks is %s", len(d.Tasks), p)
		}
	}
	return float64(took.Microseconds()) / float64(events), nil
}

// play simulates a run until its end and returns the number of its events.
func play(s *workflow.State, now time.Time) (events int, err error) {
	var flying []workflow.TaskStarted
	apply := func(in workflow.Input) error {
		list, err := workflow.Decide(s, in, now)
		for _, e := range list {
			s.Apply(e, now)
			if e, ok := e.(workflow.TaskStarted); ok {
				flying = append(flying, e)
			}
		}
		events += len(list)
		return err
	}
	for workflow.Due(s, now) {
		if err := apply(workflow.Tick{Parallel: 16}); err != nil {
			return events, err
		}
		if len(flying) == 0 {
			break
		}
		done := flying[0]
		flying = flying[1:]
		if err := apply(workflow.ActDone{Task: done.Task, Step: done.Step, Attempt: done.Attempt}); err != nil {
			return events, err
		}
	}
	return events, nil
}

// measureRunReplay replays a run of 100,000 events from its log, and measures the size of its resource.
func measureRunReplay(ctx context.Context, b *bench) error {
	b.say("replay of a run of %d events", 2*replayTasks)
	log, err := embedded.Open(ctx, embedded.Options{Dir: filepath.Join(b.dir, "replay")})
	if err != nil {
		return err
	}
	defer log.Close()
	r := &runner.Runner{
		Log: log, Incarnation: "bench", Parallel: 512, Logger: slog.New(slog.DiscardHandler),
		Kinds: func(context.Context, workflow.Header) (task.Kinds, error) { return task.Kinds{"Noop": noop{}}, nil },
	}
	if err := r.Request(ctx, "run", "bench", graph(replayTasks, fanout)); err != nil {
		return err
	}
	if err := r.Drive(ctx, "run"); err != nil {
		return err
	}
	var times []float64
	var size, events int
	for range flowRounds {
		var s workflow.State
		catalog := workflow.NewCatalog()
		events = 0
		start := time.Now()
		if _, err := log.Replay(ctx, 0, func(rec eventlog.Record) error {
			list, err := rec.Events()
			events += len(list)
			if err != nil {
				return err
			}
			return catalog.Fold(rec, s.Apply)
		}); err != nil {
			return err
		}
		status, err := json.Marshal(workflow.Status(&s))
		if err != nil {
			return err
		}
		times, size = append(times, time.Since(start).Seconds()), len(status)
	}
	b.figure("workflow.replay.events_per_second", float64(events)/median(times), "events/s")
	b.figure("workflow.replay.time", median(times), "s")
	b.figure("workflow.resource.size", float64(size)/1024, "KiB")
	return nil
}
