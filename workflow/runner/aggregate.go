package runner

import (
	"context"
	"time"

	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// commitBytes bounds the data of one commit, far below the log's message limit. A decision that is larger is split in
// its order.
const commitBytes = 512 << 10

// aggregate is one run: the state as the log has it, and facts that were decided and applied but are not stored yet.
type aggregate struct {
	log     Log
	catalog *eventlog.Catalog[workflow.Event]
	name    eventlog.Aggregate
	actor   string
	now     func() time.Time

	seq     uint64
	state   *workflow.State
	pending []eventlog.Event
}

func (r *Runner) aggregate(id, actor string) *aggregate {
	return &aggregate{
		log: r.Log, catalog: workflow.NewCatalog(), name: eventlog.Aggregate{Kind: eventlog.KindRun, ID: id},
		actor: actor, now: r.now, state: new(workflow.State),
	}
}

func (r *Runner) load(ctx context.Context, id, actor string) (*aggregate, error) {
	a := r.aggregate(id, actor)
	return a, a.read(ctx)
}

// read folds in what the log holds beyond the known sequence.
func (a *aggregate) read(ctx context.Context) error {
	records, err := a.log.Read(ctx, a.name, a.seq)
	if err != nil {
		return err
	}
	for _, record := range records {
		if err := Fold(a.state, a.catalog, record); err != nil {
			return err
		}
		a.seq = record.Seq
	}
	return nil
}

// reload throws away what was not stored, and reads the run from its beginning.
func (a *aggregate) reload(ctx context.Context) error {
	a.seq, a.state, a.pending = 0, new(workflow.State), nil
	return a.read(ctx)
}

// Fold applies a stored commit to a state. On an error the state has not changed.
func Fold(s *workflow.State, catalog *eventlog.Catalog[workflow.Event], record eventlog.Record) error {
	return catalog.Fold(record, s.Apply)
}

// time is that of a decision, as the log gives it back.
func (a *aggregate) time() time.Time { return a.now().UTC().Round(0) }

// decide applies what follows from an input; said tells whether anything does. store makes it durable.
func (a *aggregate) decide(in workflow.Input) (said bool, err error) {
	now := a.time()
	events, err := workflow.Decide(a.state, in, now)
	if err != nil || len(events) == 0 {
		return false, err
	}
	return true, a.apply(events, now)
}

// settle applies what follows by itself, and what follows from that.
func (a *aggregate) settle(tick workflow.Tick) error {
	for {
		if said, err := a.decide(tick); err != nil || !said {
			return err
		}
	}
}

func (a *aggregate) apply(events []workflow.Event, now time.Time) error {
	for _, e := range events {
		ev, err := a.catalog.Encode(e)
		if err != nil {
			return err
		}
		ev.Time, ev.Actor, ev.Correlation = now, a.actor, a.name.ID
		if !plain(e) { // so that this state is the one that a replay gives
			if e, err = a.catalog.Decode(ev); err != nil {
				return err
			}
		}
		a.pending = append(a.pending, ev)
		a.state.Apply(e, now)
	}
	return nil
}

// plain says that a fact comes out of the log as it went in, because it holds no JSON of somebody else's writing. These are
// the facts of which a large run has most; the decoding of them is a tenth of what it costs.
func plain(e workflow.Event) bool {
	switch e := e.(type) {
	case workflow.TaskStarted, workflow.TaskSkipped:
		return true
	case workflow.TaskSucceeded:
		return e.Output == nil
	default:
		return false
	}
}

// store appends what was decided, as one commit (or several, when it is large).
func (a *aggregate) store(ctx context.Context) error {
	for len(a.pending) > 0 {
		n, size := 0, 0
		for ; n < len(a.pending); n++ {
			if size += len(a.pending[n].Data); n > 0 && size > commitBytes {
				break
			}
			a.pending[n].Epoch = a.seq
		}
		commit := eventlog.Commit{Aggregate: a.name, Expected: a.seq, Events: a.pending[:n:n]}
		commit.ID = commit.IDFor(a.actor)
		receipt, err := a.log.Append(ctx, commit)
		if err != nil {
			return err
		}
		a.seq, a.pending = receipt.Seq, a.pending[n:]
	}
	a.pending = nil
	return nil
}
