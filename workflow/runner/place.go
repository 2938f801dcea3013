package runner

import (
	"slices"

	"scute.dev/internal/supervise"
	"scute.dev/workflow"
)

// exceeded returns why the run may start no effect: the quota of its namespace, or a missing adoption. The quota does not apply to a run that is
// stopping.
func (d *drive) exceeded() supervise.Throttled {
	if d.unadopted != (supervise.Throttled{}) {
		return d.unadopted
	}
	if workflow.Look(d.a.State).Stopping {
		return supervise.Throttled{}
	}
	return d.runner.Quota.Throttled(d.a.State.Namespace)
}

// tick returns the input for the passing of time. Without a place, or above the quota, it allows only events that start no effect.
func (d *drive) tick() workflow.Tick {
	if !d.place.Held() || d.exceeded() != (supervise.Throttled{}) {
		return workflow.Tick{}
	}
	return workflow.Tick{Parallel: d.runner.parallel()}
}

// share releases the place when all effects in flight only wait, and requests a place when there is something to start or when an effect has finished
// waiting. granted reports whether the place was free at once.
func (d *drive) share() (granted bool, err error) {
	more, err := d.hasMore()
	if err != nil {
		return false, err
	}
	held, wanted := d.place.Held(), d.wanted()
	var why supervise.Throttled
	switch over := d.exceeded(); {
	case wanted: // a started effect may finish despite the quota
		if why = d.ask(); more && why == (supervise.Throttled{}) {
			why = over
		}
	case more && over != supervise.Throttled{}:
		why = over
		fallthrough
	case !more:
		if !d.works() {
			d.place.Give()
		}
	default:
		why = d.ask()
	}
	d.runner.Throttle(d.id, why)
	d.granted = nil
	if d.place.Asked() {
		d.granted = d.place.Ask()
	}
	if d.place.Held() {
		d.grant()
	}
	return !held && d.place.Held(), nil
}

// ask requests the place, and returns why the run is throttled until it is granted.
func (d *drive) ask() supervise.Throttled {
	if d.place.Ask(); d.place.Held() {
		return supervise.Throttled{}
	}
	return supervise.Throttled{Reason: supervise.NoFreePlace, Message: "waits for a free place: as many runs work as may at once (--run-concurrency)"}
}

// wanted reports whether an effect in flight has finished waiting and requests to work again.
func (d *drive) wanted() bool {
	for _, f := range d.inFlight {
		if slices.ContainsFunc(f.wishes, func(w wish) bool { return w.ctx.Err() == nil }) {
			return true
		}
	}
	return false
}

// grant grants all requests to work again.
func (d *drive) grant() {
	for _, f := range d.inFlight {
		for _, w := range f.wishes {
			if w.ctx.Err() == nil {
				f.waits.Store(false)
				close(w.granted)
			}
		}
		f.wishes = nil
	}
}

// works reports whether an effect in flight does more than wait.
func (d *drive) works() bool {
	for _, f := range d.inFlight {
		if !f.waits.Load() {
			return true
		}
	}
	return false
}

// hasMore reports whether an effect could be started, apart from place and quota.
func (d *drive) hasMore() (bool, error) {
	for _, e := range workflow.Effects(d.a.State) {
		if d.inFlight[e.EffectID] == nil && !d.busy(e.EffectID) {
			return true, nil
		}
	}
	events, err := workflow.Decide(d.a.State, workflow.Tick{Parallel: d.runner.parallel()}, d.a.Time())
	return len(events) > 0, err
}
