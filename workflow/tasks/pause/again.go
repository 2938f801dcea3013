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
	h, err := openRecorded(ctx, clusters, c, record)
	if err != nil {
		return classifyError(err)
	}
	return classifyError(h.restore(ctx))
}

// PauseAgain pauses again what Restore has resumed, except objects that another client has paused or resumed since.
func PauseAgain(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) error {
	h, err := openRecorded(ctx, clusters, c, record)
	if err != nil {
		return classifyError(err)
	}
	if h.hold != nil {
		if h.found, err = h.hold.Inspect(ctx, record.Roots); err != nil {
			return classifyError(err)
		}
		recorded := pauseRoots(record.Roots)
		h.found.Roots = slices.DeleteFunc(h.found.Roots, func(r hold.Root) bool { return !slices.Contains(recorded, r.Root) })
	}
	if h.switches, err = h.restorableSwitches(ctx, record.Switches); err != nil {
		return classifyError(err)
	}
	_, err = h.set(ctx, acknowledgeTimeout)
	return classifyError(err)
}

// openRecorded returns the holding for a record, on the recorded cluster.
func openRecorded(ctx context.Context, clusters *access.Clusters, c *task.Call, record Record) (*pauser, error) {
	cluster, err := clusters.OpenPinned(ctx, c, record.Cluster)
	if err != nil {
		return nil, err
	}
	return newPauser(ctx, cluster, c, record)
}
