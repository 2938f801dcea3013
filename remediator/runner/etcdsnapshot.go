package runner

import (
	"context"
	"errors"

	"scute.dev/internal/redact"
	"scute.dev/remediator"
)

// takeSnapshot begins to take a snapshot of etcd, unless it is being taken already, or was. It takes no reconciliation: a large database
// and a slow destination take minutes. Another process takes it again, if there is time.
func (r *Runner) takeSnapshot(ctx context.Context, e *tracker, f *remediator.Facts, a remediator.Action) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.snapshot.Until.Equal(a.Until) {
		return
	}
	e.snapshot = remediator.SnapshotResult{Until: a.Until, Taking: true}
	go func() {
		result, err := r.snapshot(ctx, f, a)
		if result.Until = a.Until; err != nil {
			result = remediator.SnapshotResult{Until: a.Until, Err: redact.Message(err.Error()), Next: remedy(err)}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if e.snapshot.Until.Equal(a.Until) { // else it was given up, and another one is taken
			e.snapshot = result
		}
	}()
}

// snapshot waits for its place, which are shared fairly by namespaces, and is taken.
func (r *Runner) snapshot(ctx context.Context, f *remediator.Facts, a remediator.Action) (remediator.SnapshotResult, error) {
	if r.Snapshot == nil {
		return remediator.SnapshotResult{}, errNoSnapshots
	}
	ctx, cancel := context.WithTimeout(ctx, a.Until.Sub(r.now()))
	defer cancel()
	place := r.Places.Place(f.Owner.Namespace)
	if err := place.Take(ctx); err != nil {
		return remediator.SnapshotResult{}, errNoPlace
	}
	defer place.Give()
	return r.Snapshot(ctx, f, a)
}

var (
	errNoPlace     = errors.New("others were taken all the time, and only so many are at once")
	errNoSnapshots = errors.New("this process takes no snapshots")
)

// remedy is what an error says that a human can do about it, "" where it says nothing.
func remedy(err error) string {
	var known interface{ Remedy() string }
	if errors.As(err, &known) {
		return known.Remedy()
	}
	return ""
}
