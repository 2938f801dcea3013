package run

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// display shows a run that this process drives. On a terminal it redraws the state of the run;
// elsewhere it prints a line for each fact.
type display struct {
	*deps
	out    io.Writer
	screen *cli.Screen // nil if the stream cannot be redrawn

	mu    sync.Mutex
	fold  *Fold
	err   error // the first error of writing to out
	seq   uint64
	drawn time.Time
}

func (t *display) commit(r eventlog.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Seq <= t.fold.Seq {
		return nil
	}
	if err := t.fold.Apply(r); err != nil || t.screen != nil {
		return err
	}
	for _, e := range kit.Events(r) {
		if name := e.Line.Name; t.err == nil && name != "defined" && name != "undo recorded" { // only `log tail` shows these
			_, t.err = fmt.Fprintln(t.out, line(e)) // a closed pipe does not end the run
		}
	}
	return nil
}

// draw redraws the screen after a commit, and every second to update ages.
func (t *display) draw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.screen == nil || t.fold.Seq == 0 || t.seq == t.fold.Seq && time.Since(t.drawn) < time.Second {
		return
	}
	t.seq, t.drawn = t.fold.Seq, time.Now()
	_ = t.screen.Draw(t.noun.Render(t.ViewOn(t.out), t.fold.Refresh()))
}

// idleTimeout limits how long the last events of an idle run are read.
const idleTimeout = 30 * time.Second

// follow shows the commits of a run after a sequence, until stop is called. stop shows the
// remaining commits and returns the run.
func (l *local) follow(ctx context.Context, f *Fold, after uint64, format *cli.Format) (stop func() (*Run, error)) {
	t := &display{deps: l.deps, out: l.Stream(format), fold: f}
	if l.Env.CanRedraw(t.out) {
		t.screen = &cli.Screen{Out: t.out, Size: l.Env.Size}
	}
	// If ctx is cancelled, the run is interrupted, and the display continues until the run is idle.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	aggregate := eventlog.Aggregate{Kind: eventlog.KindRun, ID: f.ID}
	var running sync.WaitGroup
	running.Go(func() {
		_ = l.log.Follow(ctx, after, func(r eventlog.Record) error { // after an error, stop reads the rest
			if r.Aggregate != aggregate {
				return nil
			}
			return t.commit(r)
		})
	})
	running.Go(func() {
		clock := time.NewTicker(100 * time.Millisecond)
		defer clock.Stop()
		for ctx.Err() == nil {
			t.draw()
			select {
			case <-ctx.Done():
			case <-clock.C:
			}
		}
	})
	return func() (*Run, error) {
		cancel()
		running.Wait()
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), idleTimeout)
		defer cancel()
		rest, err := l.log.Read(reading, aggregate, f.Seq)
		for i := 0; i < len(rest) && err == nil; i++ {
			err = t.commit(rest[i])
		}
		if err != nil {
			return nil, fmt.Errorf("reading the last events of run %s: %w", f.ID, err)
		}
		t.drawn = time.Time{}
		t.draw()
		return f.Refresh(), nil
	}
}
