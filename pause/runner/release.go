package runner

import (
	"context"
	"slices"
	"time"

	"scute.dev/kube/object"
	"scute.dev/pause"
	"scute.dev/pause/request"
)

// held returns the names of the recorded Clusters.
func (d *drive) held() []string {
	names := make([]string, len(d.State.Roots))
	for i, root := range d.State.Roots {
		names[i] = root.Ref.Name
	}
	slices.Sort(names)
	return names
}

// restore restores the earlier pause state of every Cluster.
func (d *drive) restore(ctx context.Context) error {
	if names := d.held(); len(names) > 0 {
		if err := d.open(ctx, names); err != nil {
			return err
		}
		if err := d.Held(d.runner.Incarnation); err != nil {
			return err
		}
		if err := d.hold.Restore(ctx, d.State.Roots); err != nil {
			return err
		}
	}
	return d.decide(ctx, request.Unpaused{})
}

// awake evaluates which objects still have a True condition Paused.
func (d *drive) awake(ctx context.Context) (time.Duration, error) {
	var asleep []pause.Wait
	if names := d.held(); len(names) > 0 {
		if err := d.open(ctx, names); err != nil {
			return 0, err
		}
		var err error
		if asleep, err = d.hold.Asleep(ctx); err != nil {
			return 0, err
		}
	}
	slices.SortFunc(asleep, func(a, b pause.Wait) int { return object.Compare(a.Ref, b.Ref) })
	return d.look.NextBackOff(), d.decide(ctx, request.Awake{Asleep: asleep})
}
