package projector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// DefaultEvery is how many commits may follow a snapshot before the next one is due: about a tenth of a second of
// replay.
const DefaultEvery = 25_000

// Options configure how a view is stored. The zero value stores no snapshots and logs nothing.
type Options struct {
	// Name of the view, for snapshots and log lines.
	Name string
	// Version of the view's code. A snapshot of another version is not used: raise it when Apply or Snapshot changes.
	Version int
	// Snapshot is the file for snapshots; "" keeps none. Only a view that is a Snapshotter has snapshots.
	Snapshot string
	// Every is how many commits may follow a snapshot before the next is due; 0 is DefaultEvery.
	Every uint64
	// Logger receives what was set aside and snapshots that could not be used; nil is none.
	Logger *slog.Logger
}

// SetAside is an aggregate that a view cannot follow any further.
type SetAside struct {
	Aggregate eventlog.Aggregate
	// Seq is the first commit that could not be folded in; Commits counts it and those after it.
	Seq     uint64
	Commits uint64
	Err     error
}

// Projector keeps one view of type V up to date with the log.
type Projector[V View] struct {
	log     Log
	newView func() V
	opts    Options
	logger  *slog.Logger

	caughtUp chan struct{}
	ended    chan struct{}
	endErr   error // set before ended is closed
	snapshot snapshotState

	mu       sync.RWMutex
	view     V
	last     eventlog.Record // the last one folded in; Seq is the view's position
	aside    map[eventlog.Aggregate]*SetAside
	advanced chan struct{} // closed when the view advances; nil while there is no waiter
}

// New makes a projector. newView makes an empty view, another one at each call, because a view filled from an unusable
// snapshot is discarded. Run starts it.
func New[V View](log Log, newView func() V, o Options) *Projector[V] {
	o.Every = cmp.Or(o.Every, DefaultEvery)
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Projector[V]{
		log: log, newView: newView, opts: o, logger: logger.With("view", o.Name),
		caughtUp: make(chan struct{}), ended: make(chan struct{}),
		view: newView(), aside: map[eventlog.Aggregate]*SetAside{},
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
	if a := p.setAside(r.Aggregate); a != nil {
		a.Commits++
	} else if err := p.view.Apply(r); err != nil {
		p.aside[r.Aggregate] = &SetAside{Aggregate: r.Aggregate, Seq: r.Seq, Commits: 1, Err: err}
		p.logger.Error("aggregate set aside: the view cannot follow it", "aggregate", r.Aggregate.String(), "sequence", r.Seq, "error", err)
	}
	p.last = r
	if p.advanced != nil {
		close(p.advanced)
		p.advanced = nil
	}
}

// setAside spares the usual case, in which nothing is, the look-up.
func (p *Projector[V]) setAside(a eventlog.Aggregate) *SetAside {
	if len(p.aside) == 0 {
		return nil
	}
	return p.aside[a]
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

// Aside lists the aggregates that the view cannot follow, by the sequence at which that began.
func (p *Projector[V]) Aside() []SetAside {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := make([]SetAside, 0, len(p.aside))
	for _, a := range p.aside {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b SetAside) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Follows says whether the view can be trusted for an aggregate: nil, or why it was set aside.
func (p *Projector[V]) Follows(a eventlog.Aggregate) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if s := p.aside[a]; s != nil {
		return fmt.Errorf("view %q does not follow %s since commit %d: %w", p.opts.Name, a, s.Seq, s.Err)
	}
	return nil
}

// snapshotState is touched by Run's goroutine only.
type snapshotState struct {
	seq  uint64        // the newest snapshot's position
	at   time.Time     // when it was taken
	took time.Duration // how long that took
}

// snapshotShare bounds the time that snapshots may take: after one that took t, the next waits for 20 t.
const snapshotShare = 20

func (p *Projector[V]) snapshotDue() bool {
	return p.last.Seq-p.snapshot.seq >= p.opts.Every && time.Since(p.snapshot.at) >= snapshotShare*p.snapshot.took
}

// snapshotWorthwhile says whether to take one at the end: not for a handful of commits.
func (p *Projector[V]) snapshotWorthwhile() bool {
	fresh := p.last.Seq - p.snapshot.seq
	return fresh > 0 && fresh >= p.opts.Every/10
}

// save takes a snapshot. If it fails, the only consequence is a slower start.
func (p *Projector[V]) save() {
	v, ok := any(p.view).(Snapshotter)
	if !ok || p.opts.Snapshot == "" || len(p.aside) > 0 {
		// With an aggregate set aside the view has a hole, which a program that knows more could fill by a replay.
		return
	}
	start := time.Now()
	err := p.write(v)
	p.snapshot = snapshotState{seq: p.last.Seq, at: time.Now(), took: time.Since(start)}
	if err != nil {
		p.logger.Warn("snapshot not written; the next start replays more", "file", p.opts.Snapshot, "error", err)
	}
}

// errUnusable is a snapshot that cannot be used and costs only a replay.
var errUnusable = errors.New("snapshot not usable")
