package aggregate

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"scute.dev/eventlog"
)

// Applier is a view to which a Projector applies the log. Its state depends only on the commits and their order.
type Applier interface {
	// Apply applies a commit. It ignores commits of other kinds. It returns an error, for example eventlog.ErrUnknownType, if the view cannot follow the
	// commit's aggregate any further. Then Apply has changed nothing. Apply is called by one goroutine.
	Apply(r eventlog.Record) error
}

// Projector keeps a view up to date with the log: it replays the log, follows it, and reports its position.
type Projector struct {
	log      *eventlog.Log
	view     Applier
	name     string
	logger   *slog.Logger
	caughtUp chan struct{}
	ended    chan struct{}
	endErr   error // set before ended is closed

	mu       sync.Mutex
	position uint64
	advanced chan struct{} // closed when the view advances; nil if no caller waits
}

// NewProjector returns a projector for an empty view, which the name denotes in messages. Run starts it.
func NewProjector(log *eventlog.Log, name string, view Applier, logger *slog.Logger) *Projector {
	return &Projector{
		log: log, view: view, name: name, logger: logger.With("view", name),
		caughtUp: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Run replays the log, and follows it until ctx ends. It always returns an error: the error of ctx, or an alarm (eventlog.ErrGap,
// eventlog.ErrMissing), after which the view is invalid. It is called once.
func (p *Projector) Run(ctx context.Context) error {
	p.endErr = fmt.Errorf("projecting the log into view %q: %w", p.name, p.run(ctx))
	close(p.ended)
	return p.endErr
}

func (p *Projector) run(ctx context.Context) error {
	head, err := p.log.Head(ctx)
	if err != nil {
		return err
	}
	if head == 0 {
		close(p.caughtUp)
	}
	aside := make(map[eventlog.Aggregate]bool) // aggregates with a commit that the view cannot apply
	return p.log.Follow(ctx, 0, func(r eventlog.Record) error {
		if !aside[r.Aggregate] {
			if err := p.view.Apply(r); err != nil {
				aside[r.Aggregate] = true
				p.logger.Error("aggregate set aside: the view cannot follow it",
					"aggregate", r.Aggregate.String(), "sequence", r.Seq, "error", err)
			}
		}
		p.advance(r.Seq)
		if r.Seq == head {
			close(p.caughtUp)
		}
		return nil
	})
}

func (p *Projector) advance(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.position = seq
	if p.advanced != nil {
		close(p.advanced)
		p.advanced = nil
	}
}

// Position returns the sequence of the last commit that was applied to the view.
func (p *Projector) Position() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.position
}

// CaughtUp returns a channel that is closed when the view has applied the commit that was the log's last one when Run began.
func (p *Projector) CaughtUp() <-chan struct{} { return p.caughtUp }

// WaitFor waits until the view has applied the commit at seq, so that a caller can read what it appended. It fails if ctx or Run ends first.
func (p *Projector) WaitFor(ctx context.Context, seq uint64) error {
	for {
		p.mu.Lock()
		if p.position >= seq {
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
			return fmt.Errorf("waiting for view %q to reach %d, it is at %d: %w", p.name, seq, p.Position(), ctx.Err())
		case <-p.ended:
			// endErr may be read, because it was set before ended was closed.
			return fmt.Errorf("waiting for view %q to reach %d: %w", p.name, seq, p.endErr)
		}
	}
}
