package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/internal/redact"
	"scute.dev/remediator"
)

// Observer reads facts.
type Observer interface {
	// Observe returns an owner's facts without etcd. If the owner is gone, Owner.Found is false and
	// the error is nil. made contains the objects of escalation steps in the log.
	Observe(ctx context.Context, owner remediator.Owner, made remediator.CreatedObjects) (*remediator.Facts, error)
	// Probe returns the facts with the responses of the cluster's API server and of etcd. A server
	// that cannot be queried is Unknown with the reason, not an error.
	Probe(ctx context.Context, f *remediator.Facts) (*remediator.Facts, error)
}

type executor interface {
	Perform(ctx context.Context, f *remediator.Facts, a remediator.Action) error
}

// Runner performs turns of owners (see the package's comment). Set its exported fields before use.
type Runner struct {
	Log aggregate.Log
	// Incarnation identifies this process. It changes with each restart.
	Incarnation string
	Observer    Observer
	Executor    executor
	// View must have caught up with the log before the first turn.
	View *Remediations
	// MoveOf returns the ID of the move of a cluster that has not ended, or "". It first waits
	// until the view of moves has caught up with the log's commit seq.
	MoveOf func(ctx context.Context, seq uint64, namespace, cluster string) (string, error)
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu     sync.Mutex
	owners map[string]*tracker
	// latest is the latest time that the clock has returned.
	latest time.Time
	// startMu serializes decisions that may start something, because each start must count all
	// earlier starts. It also guards turnstile and uncounted.
	startMu sync.Mutex
	// uncounted contains the turnstile records of other processes that this process has not counted yet.
	turnstile *root
	uncounted admissions
}

const (
	// maxRounds limits the decisions in one turn. Each decision but the last records an event, and
	// a remediation has fewer than 64 steps.
	maxRounds = 64
	// turnTimeout limits a turn, without its defragmentation, which has its own timeout.
	turnTimeout = time.Minute
	// unwatchedDelay is the time until the next turn after a write that no watch reports.
	unwatchedDelay = time.Second
	// maxFailures is the number of failed writes after which a turn ends, because each failed write
	// may take long.
	maxFailures = 4
)

// Reconcile performs one turn of an owner: it reads the facts, records the events that follow, and
// performs the writes that are due. again is when the owner must be reconciled even if no watch
// reports a change; zero means never. Turns of one owner must not overlap.
func (r *Runner) Reconcile(ctx context.Context, owner remediator.Owner) (again time.Duration, err error) {
	e := r.tracker(owner)
	defer func() { e.claimed, e.behind, e.agg.State = e.agg.State.Holder == r.Incarnation, err != nil, nil }() // the view keeps the state
	t, err := r.turn(ctx, e, owner)
	if err != nil || t.facts == nil {
		return 0, err
	}
	if t.slow != nil {
		t.failed = errors.Join(t.failed, r.defragment(ctx, e, t.facts, *t.slow))
	}
	if t.failed != nil {
		ctx, cancel := context.WithTimeout(ctx, turnTimeout)
		defer cancel()
		return r.recordFailure(ctx, e, t.facts, t.failed)
	}
	e.failures = 0
	if t.unwatched {
		return unwatchedDelay, nil
	}
	return remediator.RequeueAfter(e.agg.State, t.facts, r.now()), nil
}

type turn struct {
	facts  *remediator.Facts // nil if the owner was forgotten
	slow   *remediator.Action
	failed error // errors of the writes
	// unwatched means that the owner's state has changed and that no watch reports one of the writes.
	unwatched bool
}

func (r *Runner) turn(ctx context.Context, e *tracker, owner remediator.Owner) (turn, error) {
	ctx, cancel := context.WithTimeout(ctx, turnTimeout)
	defer cancel()
	if err := r.open(ctx, e); err != nil {
		return turn{}, err
	}
	opened := e.agg.Seq
	f, err := r.observe(ctx, e, owner)
	if err != nil {
		return turn{}, err
	}
	if f, err = r.decideAll(ctx, e, f); err != nil {
		return turn{}, err
	}
	if !f.Owner.Found && !remediator.HasPending(e.agg.State) && !remediator.Guarded(f) {
		r.forget(owner)
		return turn{}, nil
	}
	actions := remediator.Actions(e.agg.State, f, r.now())
	if len(actions) == 0 {
		return turn{facts: f}, nil
	}
	// Check again for a move that was requested since the first check. A move requested later finds
	// the remediation in the log and is refused, so if both start at once, one of them stops.
	move, err := r.MoveOf(ctx, e.agg.Seq, owner.Namespace, owner.Cluster)
	if err != nil {
		return turn{}, err
	}
	if move != "" {
		moved := *f
		moved.Move = move
		if f, err = r.decideAll(ctx, e, &moved); err != nil {
			return turn{}, err
		}
		actions = remediator.Actions(e.agg.State, f, r.now())
	}
	slow, failed := r.act(ctx, e, f, actions)
	return turn{facts: f, slow: slow, failed: failed, unwatched: e.agg.Seq > opened && slices.ContainsFunc(actions, isUnwatched)}, nil
}

func isUnwatched(a remediator.Action) bool {
	return slices.Contains([]remediator.ActionType{remediator.SetClonedFrom, remediator.CreateStepObject, remediator.DeleteStepObject}, a.Type)
}

func (r *Runner) observe(ctx context.Context, e *tracker, owner remediator.Owner) (*remediator.Facts, error) {
	seen, err := r.Observer.Observe(ctx, owner, remediator.StepObjects(e.agg.State))
	if err != nil {
		return nil, fmt.Errorf("observing %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	}
	now := r.now()
	if e.requests.First.IsZero() || e.requests.First.After(now) {
		e.requests.First = now
	}
	if e.requests.Last.After(now) { // the clock was set back
		e.requests.Last = now
	}
	f := *seen
	f.EtcdRequests = e.requests
	f.Move, err = r.MoveOf(ctx, 0, owner.Namespace, owner.Cluster)
	return &f, err
}

// defragment performs a defragmentation with its own timeout, and records its deadline and its
// error in e. If this process dies, another process repeats the defragmentation if its deadline has
// not passed.
func (r *Runner) defragment(ctx context.Context, e *tracker, f *remediator.Facts, a remediator.Action) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	err := r.Executor.Perform(ctx, f, a)
	e.attempted, e.attemptErr = a.Until, ""
	if err != nil {
		e.attemptErr = redact.Message(err.Error())
	}
	return r.logWrite(e, a, err)
}

// decideAll makes decisions and records their events until a decision has none, and queries the
// cluster when a decision needs it. It returns the facts of the last decision.
func (r *Runner) decideAll(ctx context.Context, e *tracker, f *remediator.Facts) (*remediator.Facts, error) {
	unasked, remembered := f, false
	for range maxRounds {
		if remembered && !remediator.Surging(e.agg.State) {
			f, remembered = unasked, false // the next decisions count the members
		}
		known, came, err := r.decide(ctx, e, f)
		switch {
		case err != nil || came == nothingRecorded:
			return known, err
		case came == someRecorded:
			continue
		}
		if last := e.remembered(known, r.now()); last != nil {
			f, remembered = last, true
			continue
		}
		answered, err := r.Observer.Probe(ctx, known)
		if err != nil {
			return nil, fmt.Errorf("asking cluster %s/%s: %w", f.Owner.Namespace, f.Owner.Cluster, err)
		}
		f = e.recordAnswer(answered, r.now())
	}
	return nil, fmt.Errorf("%s: no stable state after %d decisions in one turn", e.agg.Name.ID, maxRounds)
}

type outcome int

const (
	nothingRecorded outcome = iota
	someRecorded            // more decisions may follow
	needsProbe              // the cluster must be queried first
)

// decide makes one decision, records its events and returns the facts on which it was based. It
// holds startMu, because the decision may start something. If the decision needs a query of the
// cluster, decide returns needsProbe, so that startMu is not held during the query.
func (r *Runner) decide(ctx context.Context, e *tracker, seen *remediator.Facts) (*remediator.Facts, outcome, error) {
	r.startMu.Lock()
	defer r.startMu.Unlock()
	for {
		r.clampTimes(r.now())
		r.recordUsage(e, seen)
		f := r.withOthers(e, seen)
		now := r.now()
		if remediator.NeedsEtcdProbe(e.agg.State, f, now) {
			return f, needsProbe, nil
		}
		events := remediator.Decide(e.agg.State, f, now)
		if len(events) == 0 {
			return f, nothingRecorded, nil
		}
		if slices.ContainsFunc(events, remediator.IsStart) {
			if again, err := r.admit(ctx, f.Owner.Owner); err != nil {
				return nil, nothingRecorded, err
			} else if again {
				continue
			}
		}
		err := e.agg.Append(ctx, r.withClaim(e, events)...)
		if errors.Is(err, eventlog.ErrConflict) {
			if err := r.refresh(ctx, e); err != nil {
				return nil, nothingRecorded, err
			}
			continue
		}
		if err == nil {
			r.logEvents(e, events)
		}
		r.recordUsage(e, f)
		return f, someRecorded, err
	}
}

func (r *Runner) withClaim(e *tracker, events []remediator.Event) []remediator.Event {
	if e.agg.State.Holder != r.Incarnation {
		events = append([]remediator.Event{remediator.Claimed{Holder: r.Incarnation}}, events...)
	}
	return r.withOwner(e.agg, events)
}

// withOwner prepends Registered to events about an owner if a view may have forgotten the owner.
func (r *Runner) withOwner(agg *root, events []remediator.Event) []remediator.Event {
	if remediator.Forget(agg.State.Clone(), r.now()) {
		return append([]remediator.Event{remediator.Registered{Owner: agg.State.Owner}}, events...)
	}
	return events
}

// refresh reads the commits that other processes have appended to the owner's aggregate. It returns
// an error if this process had claimed the owner and another process has claimed it since.
func (r *Runner) refresh(ctx context.Context, e *tracker) error {
	ours := e.agg.State.Holder == r.Incarnation
	if err := e.agg.Read(ctx); err != nil {
		return err
	}
	if !ours {
		return nil
	}
	return e.agg.CheckClaim(r.Incarnation)
}

// act claims the owner, unless this process has, and performs the writes. If another process has
// appended to the aggregate since the decision, it performs the writes that the new state requires
// instead. slow is a write that act leaves to its caller, because it takes longer than a turn.
func (r *Runner) act(ctx context.Context, e *tracker, f *remediator.Facts, actions []remediator.Action) (slow *remediator.Action, err error) {
	if len(actions) == 0 {
		return nil, nil
	}
	decided := e.agg.Seq
	if e.agg.State.Holder != r.Incarnation {
		var first []remediator.Event
		if e.agg.State.Owner.UID == "" {
			first = append(first, remediator.Registered{Owner: f.Owner.Owner})
		}
		err := e.agg.Append(ctx, r.withClaim(e, first)...)
		if errors.Is(err, eventlog.ErrConflict) { // the view had forgotten the owner, or another process was first
			err = errors.Join(err, e.agg.Read(ctx))
		}
		if err != nil {
			return nil, err
		}
	} else if err := r.refresh(ctx, e); err != nil {
		return nil, err
	}
	if e.agg.Seq != decided {
		actions = remediator.Actions(e.agg.State, f, r.now())
	}
	return r.perform(ctx, e, f, actions)
}

// perform performs the writes in their order. After a failed write it skips only the writes that
// depend on it, because undoing an escalation step of one machine must not wait for a write to
// another machine.
func (r *Runner) perform(ctx context.Context, e *tracker, f *remediator.Facts, actions []remediator.Action) (slow *remediator.Action, err error) {
	var failed []remediator.Action
	var errs []error
	for _, a := range actions {
		switch {
		case slices.ContainsFunc(failed, a.DependsOn):
			continue
		case a.Type == remediator.Defragment:
			slow = &a
			continue
		}
		err := r.logWrite(e, a, r.Executor.Perform(ctx, f, a))
		if err == nil {
			continue
		}
		failed, errs = append(failed, a), append(errs, err)
		if ctx.Err() != nil || len(failed) == maxFailures {
			break
		}
	}
	return slow, errors.Join(errs...)
}

func (r *Runner) now() time.Time { return aggregate.Time(r.Now) }

// root is the aggregate of an owner or of the turnstile.
type root = aggregate.Root[remediator.Event, *remediator.State]

func (r *Runner) root(id string, state *remediator.State, seq uint64) *root {
	made := &root{
		Log: r.Log, Catalog: remediator.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRemediation, ID: id},
		Actor: Actor(r.Incarnation), Now: r.now, State: state, Seq: seq,
	}
	if id != turnstile { // its events have no causes, and there are many
		made.Links = remediator.Links
	}
	return made
}

// Actor returns the actor name of a process in the log.
func Actor(incarnation string) string { return "daemon/" + incarnation }
