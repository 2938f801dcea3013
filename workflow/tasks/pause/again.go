package pause

import (
	"context"
	"slices"

	"scute.dev/pause/hold"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Restore ends the pause of a record. It restores exactly the recorded state, on objects that still have the Pause's mark.
func Restore(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) error {
	h, err := recorded(ctx, clusters, c, record)
	if err != nil {
		return retriable(err)
	}
	return retriable(h.restore(ctx))
}

// SetAgain pauses again what Restore has resumed, except objects that another client has paused or resumed since.
func SetAgain(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) error {
	h, err := recorded(ctx, clusters, c, record)
	if err != nil {
		return retriable(err)
	}
	if h.hold != nil {
		if h.found, err = h.hold.Look(ctx, record.Roots); err != nil {
			return retriable(err)
		}
		recorded := plain(record.Roots)
		h.found.Roots = slices.DeleteFunc(h.found.Roots, func(r hold.Root) bool { return !slices.Contains(recorded, r.Root) })
	}
	if h.switches, err = h.unturned(ctx, record.Switches); err != nil {
		return retriable(err)
	}
	_, err = h.set(ctx, acknowledge)
	return retriable(err)
}

// recorded returns the holding for a record, on the recorded cluster.
func recorded(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) (*holding, error) {
	cluster, err := clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return nil, err
	}
	return newHolding(ctx, cluster, c, record)
}
