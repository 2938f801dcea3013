package pause

import (
	"context"

	"scute.dev/kube/object"
	"scute.dev/pause"
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
		found, err := h.hold.Look(ctx, record.roots())
		if err != nil {
			return retriable(err)
		}
		h.found = unchanged(found, record.Roots)
	}
	if h.switches, err = h.unturned(ctx, record.Switches); err != nil {
		return retriable(err)
	}
	_, err = h.set(ctx, acknowledge)
	return retriable(err)
}

// unchanged keeps the roots that stand as they were recorded.
func unchanged(found hold.Found, recorded []pausedRoot) hold.Found {
	was := make(map[object.Ref]pause.Root, len(recorded))
	for _, r := range recorded {
		was[r.Ref] = r.Root
	}
	var roots []pause.Root
	for _, r := range found.Roots {
		if was[r.Ref] == r {
			roots = append(roots, r)
		}
	}
	found.Roots = roots
	return found
}

// recorded is the holding of a record, on the cluster that it names.
func recorded(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) (*holding, error) {
	cluster, err := clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return nil, err
	}
	return newHolding(ctx, cluster, c, record)
}
