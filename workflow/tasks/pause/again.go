package pause

import (
	"context"
	"slices"

	"scute.dev/pause/hold"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Restore lifts the pause of a record: it restores exactly what was recorded, on what still has the mark of the Pause.
func Restore(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) error {
	h, err := recorded(ctx, clusters, c, record)
	if err != nil {
		return retriable(err)
	}
	return retriable(h.restore(ctx))
}

// SetAgain pauses again what Restore has resumed. What somebody else has paused or resumed since is left to them.
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

// recorded is the holding of a record, on the cluster that it names.
func recorded(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) (*holding, error) {
	cluster, err := clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return nil, err
	}
	return newHolding(ctx, cluster, c, record)
}
