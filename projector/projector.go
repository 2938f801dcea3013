package projector

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"scute.dev/eventlog"
)

// defaultEvery is how many commits may follow a snapshot before the next one is due: about a tenth of a second of
// replay.
const defaultEvery = 25_000

// Options configure how a view is stored. The zero value stores no snapshots and logs nothing.
type Options struct {
	// Name of the view, for snapshots and log lines.
	Name string
	// Program tells the running program from every other one. A snapshot of another one is not used: it may have folded the
	// same commits in another way.
	Program string
	// Snapshot is the file for snapshots; "" keeps none. Only a view that is a Snapshotter has snapshots.
	Snapshot string
	// Every is how many commits may follow a snapshot before the next is due; 0 is defaultEvery.
	Every uint64
	// Hold puts a snapshot off while it is true; nil is never. It is asked from the goroutine of Run.
	Hold func() bool
	// Logger receives what was set aside and snapshots that could not be used; nil is none.
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
	snapshot snapshotState

	mu       sync.RWMutex
	view     V
	last     eventlog.Record                 // the last one folded in; Seq is the view's position
	aside    map[eventlog.Aggregate]struct{} // those that the view cannot follow any further
	advanced chan struct{}                   // closed when the view advances; nil while there is no waiter
}

// New makes a projector for an empty view. Run starts it.
func New[V View](log Log, view V, o Options) *Projector[V] {
	o.Every = cmp.Or(o.Every, defaultEvery)
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

// Run restores the newest usable snapshot, replays what follows it, and continues to follow the log until ctx ends. Its
// error is never nil: the end of ctx, or an alarm (eventlog.ErrGap, eventlog.ErrMissing) after which the view cannot be
// trusted. It is called once.
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
	if err := p.restore(ctx, head); err != nil {
		return err
	}
	position := p.Position()
	if position >= head {
		close(p.caughtUp)
	}
	err = p.log.Follow(ctx, position, func(r eventlog.Record) error {
		p.apply(r)
		if r.Seq == head {
			close(p.caughtUp)
		}
		// While it catches up, a projector takes no snapshots: they would only slow it down.
		if r.Seq >= head && p.snapshotDue() {
			p.save()
		}
		return nil
	})
	if ctx.Err() != nil && p.snapshotWorthwhile() {
		p.save()
	}
	return err
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
