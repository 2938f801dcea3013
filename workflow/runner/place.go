package runner

import (
	"slices"

	"scute.dev/internal/supervise"
	"scute.dev/workflow"
)

// throttled returns why the run may start no effect. The quota does not apply to a run that is
// stopping.
func (d *drive) throttled() supervise.Throttled {
	if d.adoptionThrottle != (supervise.Throttled{}) {
		return d.adoptionThrottle
	}
	if workflow.Summarize(d.a.State).Stopping {
		return supervise.Throttled{}
	}
	return d.runner.Quota.Throttled(d.a.State.Namespace)
}

// tick returns the next Tick. Without a slot, or while the run is throttled, the Tick allows only
// events that start no effect.
func (d *drive) tick() workflow.Tick {
	if !d.slot.Held() || d.throttled() != (supervise.Throttled{}) {
		return workflow.Tick{}
	}
	return workflow.Tick{Parallel: d.runner.parallel()}
}

// updateSlot releases the slot if all effects only wait. It requests the slot if an effect can
// start or has finished waiting. granted means that the slot was free at once.
func (d *drive) updateSlot() (granted bool, err error) {
	more, err := d.hasMore()
	if err != nil {
		return false, err
	}
	held, wanted := d.slot.Held(), d.hasSlotRequests()
	var why supervise.Throttled
	switch over := d.throttled(); {
	case wanted: // an effect that has started may finish despite the quota
		if why = d.requestSlot(); more && why == (supervise.Throttled{}) {
			why = over
		}
	case more && over != supervise.Throttled{}:
		why = over
		fallthrough
	case !more:
		if !d.isWorking() {
			d.slot.Release()
		}
	default:
		why = d.requestSlot()
	}
	d.runner.Throttle(d.id, why)
	d.granted = nil
	if d.slot.Pending() {
		d.granted = d.slot.Request()
	}
	if d.slot.Held() {
		d.grantSlots()
	}
	return !held && d.slot.Held(), nil
}

// requestSlot requests the slot. It returns why the run is throttled until the slot is granted.
func (d *drive) requestSlot() supervise.Throttled {
	if d.slot.Request(); d.slot.Held() {
		return supervise.Throttled{}
	}
	return supervise.Throttled{Reason: supervise.NoFreePlace, Message: "waiting for a free slot: the maximum number of runs is working " +
		"(--run-concurrency)"}
}

func (d *drive) hasSlotRequests() bool {
	for _, f := range d.inFlight {
		if slices.ContainsFunc(f.slotRequests, func(w slotRequest) bool { return w.ctx.Err() == nil }) {
			return true
		}
	}
	return false
}

func (d *drive) grantSlots() {
	for _, f := range d.inFlight {
		for _, w := range f.slotRequests {
			if w.ctx.Err() == nil {
				f.waiting.Store(false)
				close(w.granted)
			}
		}
		f.slotRequests = nil
	}
}

func (d *drive) isWorking() bool {
	for _, f := range d.inFlight {
		if !f.waiting.Load() {
			return true
		}
	}
	return false
}

// hasMore reports whether an effect could start if neither the slot nor the quota prevented it.
func (d *drive) hasMore() (bool, error) {
	for _, e := range workflow.Effects(d.a.State) {
		if d.inFlight[e.EffectID] == nil && !d.isBusy(e.EffectID) {
			return true, nil
		}
	}
	events, err := workflow.Decide(d.a.State, workflow.Tick{Parallel: d.runner.parallel()}, d.a.Time())
	return len(events) > 0, err
}
