package runner

import (
	"context"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// run is one run: the state as the log has it, and what was decided and is not stored yet.
type run struct {
	aggregate.Root[workflow.Event, *workflow.State]
	// brought is the Digest of the run.
	brought string
}

func (r *Runner) load(ctx context.Context, id, actor string) (*run, error) {
	a := &run{Root: aggregate.Root[workflow.Event, *workflow.State]{
		Log: r.Log, Catalog: workflow.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, Actor: actor, Now: r.now,
		Plain: plain, Links: workflow.Links, State: new(workflow.State),
	}}
	a.Seen = func(e eventlog.Event) { a.brought = Digest(a.brought, e) }
	return a, a.Read(ctx)
}

// reload throws away what was not stored, and reads the run from its beginning.
func (a *run) reload(ctx context.Context) error {
	a.brought = ""
	return a.Reload(ctx, new(workflow.State))
}

// decide applies what follows from an input; said tells whether anything does. Store makes it durable.
func (a *run) decide(in workflow.Input) (said bool, err error) {
	now := a.Time()
	events, err := workflow.Decide(a.State, in, now)
	if err != nil || len(events) == 0 {
		return false, err
	}
	return true, a.Record(now, events...)
}

// settle applies what follows by itself, and what follows from that.
func (a *run) settle(tick workflow.Tick) error {
	for {
		if said, err := a.decide(tick); err != nil || !said {
			return err
		}
	}
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
