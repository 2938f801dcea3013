package runner

import (
	"context"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

func (d *drive) recordedNames() []string {
	names := make([]string, len(d.State.Roots))
	for i, root := range d.State.Roots {
		names[i] = root.Ref.Name
	}
	slices.Sort(names)
	return names
}

func (d *drive) restore(ctx context.Context) error {
	if names := d.recordedNames(); len(names) > 0 {
		if err := d.prepare(ctx, names); err != nil {
			return err
		}
		if err := d.CheckClaim(d.runner.Incarnation); err != nil {
			return err
		}
		if err := d.hold.Restore(ctx, d.State.Roots); err != nil {
			return err
		}
	}
	return d.decide(ctx, request.Restored{})
}

func (d *drive) checkResumed(ctx context.Context) (time.Duration, error) {
	var asleep []pause.PendingObject
	if names := d.recordedNames(); len(names) > 0 {
		if err := d.prepare(ctx, names); err != nil {
			return 0, err
		}
		var err error
		if asleep, err = d.hold.StillPaused(ctx); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(asleep, func(a, b pause.PendingObject) int { return object.Compare(a.Ref, b.Ref) })
	return d.pollBackOff.NextBackOff(), d.decide(ctx, request.ResumeEvaluated{StillPaused: asleep})
}
