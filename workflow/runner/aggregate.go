package runner

import (
	"context"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// run is the state of a run. It includes events that were decided but are not stored yet.
type run struct {
	aggregate.Root[workflow.Event, *workflow.State]
	digest string
}

func (r *Runner) load(ctx context.Context, id, actor string) (*run, error) {
	a := &run{Root: aggregate.Root[workflow.Event, *workflow.State]{
		Log: r.Log, Catalog: workflow.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindRun, ID: id}, Actor: actor, Now: r.now,
		RoundTrips: isPlain, Links: workflow.Links, State: new(workflow.State),
	}}
	a.OnStored = func(e eventlog.Event) { a.digest = Digest(a.digest, e) }
	return a, a.Read(ctx)
}

func (a *run) reload(ctx context.Context) error {
	a.digest = ""
	return a.Reload(ctx, new(workflow.State))
}

// decide applies the events that follow from an input. said reports whether there were any. The
// events become durable only when Store is called.
func (a *run) decide(in workflow.Input) (said bool, err error) {
	now := a.Time()
	events, err := workflow.Decide(a.State, in, now)
	if err != nil || len(events) == 0 {
		return false, err
	}
	return true, a.Record(now, events...)
}

func (a *run) settle(tick workflow.Tick) error {
	for {
		if said, err := a.decide(tick); err != nil || !said {
			return err
		}
	}
}

// isPlain reports whether the stored form of an event decodes to an equal event, so that decoding
// can be skipped. These events are frequent: decoding them would take a tenth of the cost of a
// large run.
func isPlain(e workflow.Event) bool {
	switch e := e.(type) {
	case workflow.TaskStarted, workflow.TaskSkipped:
		return true
	case workflow.TaskSucceeded:
		return e.Output == nil
	default:
		return false
	}
}
