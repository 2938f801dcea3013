package run

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"scute.dev/cmd/ctl/output"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
	"scute.dev/workflow/runner"
)

// drawer shows a run while it changes.
type drawer interface {
	// commit is called after a commit was applied to the fold.
	commit(f *Fold, r eventlog.Record) error
	// tick is called every tenth of a second.
	tick(f *Fold)
	// last is called at the end.
	last(f *Fold)
}

func (d *deps) drawer(format *output.Format) drawer {
	out := d.Stream(format)
	if d.Env.CanRedraw(out) {
		return &display{deps: d, out: out, screen: d.Screen(out)}
	}
	return &lines{out: out}
}

// display redraws a terminal in place.
type display struct {
	*deps
	out    io.Writer
	screen *term.Screen
	dirty  bool
	drawn  time.Time
}

func (t *display) commit(*Fold, eventlog.Record) error {
	t.dirty = true
	return nil
}

func (t *display) tick(f *Fold) {
	if t.dirty || time.Since(t.drawn) >= time.Second {
		t.draw(f.Refresh())
	}
}

func (t *display) last(f *Fold) { t.draw(f.Refresh()) }

func (t *display) draw(r *Run) {
	t.dirty, t.drawn = false, time.Now()
	_ = t.screen.Draw(t.noun.Render(t.ViewOn(t.out), r))
}

// lines writes a line for each fact.
type lines struct{ out io.Writer }

func (l *lines) commit(_ *Fold, r eventlog.Record) error {
	for _, e := range show.Events(r) {
		if isInternal(e.Line.Name) {
			continue
		}
		if _, err := fmt.Fprintln(l.out, line(e)); err != nil {
			return err
		}
	}
	return nil
}

// isInternal reports whether a fact is only shown by `log tail`.
func isInternal(what string) bool { return what == "defined" || what == "undo recorded" }

func (*lines) tick(*Fold) {}
func (*lines) last(*Fold) {}

// follower shows a run while the runner drives it.
type follower struct {
	*deps
	draw    drawer
	stop    context.CancelFunc
	ended   chan error // the error that ended the stream
	changed chan struct{}

	running sync.WaitGroup

	mu   sync.Mutex
	fold *Fold
	err  error // of the stream
}

// follow shows the commits of a run after a sequence.
func (l *local) follow(ctx context.Context, f *Fold, after uint64, format *output.Format) *follower {
	// The display continues until an interrupted run is at rest.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &follower{deps: l.deps, draw: l.drawer(format), stop: cancel, ended: make(chan error, 1), changed: make(chan struct{}, 1), fold: f}
	w.running.Go(func() {
		w.ended <- l.logged.Follow(ctx, f.ID, after, func(r eventlog.Record) (bool, error) { return false, w.commit(r) })
	})
	w.running.Go(func() {
		clock := time.NewTicker(100 * time.Millisecond)
		defer clock.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-clock.C:
				w.mu.Lock()
				w.draw.tick(w.fold)
				w.mu.Unlock()
			}
		}
	})
	return w
}

func (w *follower) commit(r eventlog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Seq > w.fold.Seq {
		if err := w.fold.Apply(r); err != nil {
			return err
		}
		if w.err == nil { // a closed pipe does not end the run
			w.err = w.draw.commit(w.fold, r)
		}
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return nil
}

// waitUntilIdle waits until all commits are shown, and returns the run.
func (w *follower) waitUntilIdle(r *runner.Runner, id string) (*Run, error) {
	ctx, cancel := context.WithTimeout(context.Background(), idleTimeout)
	defer cancel()
	_, head, err := r.State(ctx, id)
	for err == nil && w.seq() < head {
		select {
		case <-w.changed:
		case err = <-w.ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	w.stop()
	w.running.Wait()
	if err != nil {
		return nil, fmt.Errorf("reading the last events of run %s: %w", id, err)
	}
	w.draw.last(w.fold)
	return w.fold.Refresh(), nil
}

func (w *follower) seq() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fold.Seq
}
