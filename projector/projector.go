package projector

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"scute.dev/eventlog"
)

// Options are the options of a projector. The zero value logs nothing.
type Options struct {
	// Name of the view, for log messages.
	Name string
	// Logger logs the aggregates that are set aside; nil logs nothing.
	Logger *slog.Logger
}

// Projector keeps one view of type V up to date with the log.
type Projector[V View] struct {
	log    Log
	opts   Options
	logger *slog.Logger

	caughtUp chan struct{}
	ended    chan struct{}
	endErr   error // set before ended is closed

	mu       sync.RWMutex
	view     V
	last     eventlog.Record                 // the last applied commit; its Seq is the position of the view
	aside    map[eventlog.Aggregate]struct{} // aggregates with a commit that the view cannot apply
	advanced chan struct{}                   // closed when the view advances; nil if no caller waits
}

// New returns a projector for an empty view. Run starts it.
func New[V View](log Log, view V, o Options) *Projector[V] {
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Projector[V]{
		log: log, opts: o, logger: logger.With("view", o.Name),
		caughtUp: make(chan struct{}), ended: make(chan struct{}),
		view: view, aside: map[eventlog.Aggregate]struct{}{},
	}
}

// Run replays the log, and follows it until ctx ends. It always returns an error: the error of ctx, or an alarm (eventlog.ErrGap,
// eventlog.ErrMissing), after which the view is invalid. It is called once.
func (p *Projector[V]) Run(ctx context.Context) error {
	err := p.run(ctx)
	err = fmt.Errorf("projecting the log into view %q: %w", p.opts.Name, err)
	p.endErr = err
	close(p.ended)
	return err
}

func (p *Projector[V]) run(ctx context.Context) error {
	head, err := p.log.Head(ctx)
	if err != nil {
		return err
	}
	if head == 0 {
		close(p.caughtUp)
	}
	return p.log.Follow(ctx, 0, func(r eventlog.Record) error {
		p.apply(r)
		if r.Seq == head {
			close(p.caughtUp)
		}
		return nil
	})
}

// apply applies a commit, or sets its aggregate aside.
func (p *Projector[V]) apply(r eventlog.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, aside := p.aside[r.Aggregate]; !aside {
		if err := p.view.Apply(r); err != nil {
			p.aside[r.Aggregate] = struct{}{}
			p.logger.Error("aggregate set aside: the view cannot follow it", "aggregate", r.Aggregate.String(), "sequence", r.Seq, "error", err)
		}
	}
	p.last = r
	if p.advanced != nil {
		close(p.advanced)
		p.advanced = nil
	}
}

// Position returns the sequence of the last commit that was applied to the view.
func (p *Projector[V]) Position() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.last.Seq
}

// CaughtUp returns a channel that is closed when the view has applied the commit that was the log's last one when Run began.
func (p *Projector[V]) CaughtUp() <-chan struct{} { return p.caughtUp }

// WaitFor waits until the view has applied the commit at seq, so that a caller can read what it appended. It fails if ctx or Run ends first.
func (p *Projector[V]) WaitFor(ctx context.Context, seq uint64) error {
	for {
		p.mu.Lock()
		if p.last.Seq >= seq {
			p.mu.Unlock()
			return nil
		}
		if p.advanced == nil {
			p.advanced = make(chan struct{})
		}
		advanced := p.advanced
		p.mu.Unlock()
		select {
		case <-advanced:
		case <-ctx.Done():
			return fmt.Errorf("waiting for view %q to reach %d, it is at %d: %w", p.opts.Name, seq, p.Position(), ctx.Err())
		case <-p.ended:
			// endErr may be read, because it was set before ended was closed.
			return fmt.Errorf("waiting for view %q to reach %d: %w", p.opts.Name, seq, p.endErr)
		}
	}
}

// Read calls fn with the view and its position. No commit is applied meanwhile. fn must copy what it retains.
func (p *Projector[V]) Read(fn func(seq uint64, view V)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	fn(p.last.Seq, p.view)
}
