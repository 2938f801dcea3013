package runner

import (
	"slices"

	"scute.dev/internal/supervise"
	"scute.dev/workflow"
)

// exceeded says why the quota of its namespace, or a missing adoption, keeps the run from starting anything. A run that winds down is never kept from it.
func (d *drive) exceeded() supervise.Throttled {
	if d.unadopted != (supervise.Throttled{}) {
		return d.unadopted
	}
	if workflow.Look(d.a.State).Stopping {
		return supervise.Throttled{}
	}
	return d.runner.Quota.Throttled(d.a.State.Namespace)
}

// tick is what may follow by itself: without a place, and above the quota, only what starts nothing.
func (d *drive) tick() workflow.Tick {
	if !d.place.Held() || d.exceeded() != (supervise.Throttled{}) {
		return workflow.Tick{}
	}
	return workflow.Tick{Parallel: d.runner.parallel()}
}

// share gives the place back when all that is in flight only waits, and asks for one when there is something to start, or when
// something that has waited has more to do. granted says that it was there at once.
func (d *drive) share() (granted bool, err error) {
	more, err := d.hasMore()
	if err != nil {
		return false, err
	}
	held, wanted := d.place.Held(), d.wanted()
	var why supervise.Throttled
	switch over := d.exceeded(); {
	case wanted: // it was started, and ends whatever the quota is
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

// ask asks for the place, and says why what needs one is kept waiting.
func (d *drive) ask() supervise.Throttled {
	if d.place.Ask(); d.place.Held() {
		return supervise.Throttled{}
	}
	return supervise.Throttled{Reason: supervise.NoFreePlace, Message: "waits for a free place: as many runs work as may at once (--run-concurrency)"}
}

// wanted says that something in flight that has waited asks to work again.
func (d *drive) wanted() bool {
	for _, f := range d.inFlight {
		if slices.ContainsFunc(f.wishes, func(w wish) bool { return w.ctx.Err() == nil }) {
			return true
		}
	}
	return false
}

// grant lets those work again that ask for it.
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

// works says that something in flight does more than wait.
func (d *drive) works() bool {
	for _, f := range d.inFlight {
		if !f.waits.Load() {
			return true
		}
	}
	return false
}

// hasMore says that something would be started if it might be.
func (d *drive) hasMore() (bool, error) {
	for _, e := range workflow.Effects(d.a.State) {
		if d.inFlight[e.EffectID] == nil && !d.busy(e.EffectID) {
			return true, nil
		}
	}
	events, err := workflow.Decide(d.a.State, workflow.Tick{Parallel: d.runner.parallel()}, d.a.Time())
	return len(events) > 0, err
}
