package projector

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"scute.dev/eventlog"
)

// Options of a projector. The zero value logs nothing.
type Options struct {
	// Name of the view, for log lines.
	Name string
	// Logger receives the aggregates that were set aside; nil is none.
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
	last     eventlog.Record                 // the last one folded in; Seq is the view's position
	aside    map[eventlog.Aggregate]struct{} // those that the view cannot follow any further
	advanced chan struct{}                   // closed when the view advances; nil while there is no waiter
}

// New makes a projector for an empty view. Run starts it.
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

// Run replays the log, and continues to follow it until ctx ends. Its error is never nil: the end of
// ctx, or an alarm (eventlog.ErrGap, eventlog.ErrMissing) after which the view cannot be trusted. It is called once.
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

// apply folds one record in, or sets its aggregate aside.
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

// Position is the sequence of the last commit that the view has taken in.
func (p *Projector[V]) Position() uint64 {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.last.Seq
}

// CaughtUp is closed when the view has reached the log's last commit as it was when Run began.
func (p *Projector[V]) CaughtUp() <-chan struct{} { return p.caughtUp }

// WaitFor returns when the view holds the commit at seq, so that what was just appended is read. It fails when ctx or
// Run ends first.
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
			// ended is closed after endErr was set.
			return fmt.Errorf("waiting for view %q to reach %d: %w", p.opts.Name, seq, p.endErr)
		}
	}
}

// Read calls fn with the view at position seq, while no commit is applied. fn must not retain what it does not copy.
func (p *Projector[V]) Read(fn func(seq uint64, view V)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	fn(p.last.Seq, p.view)
}
