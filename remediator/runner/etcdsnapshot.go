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
	e.snapshot = remediator.SnapshotResult{Until: a.Until, Taking: true, Queued: true}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, a.For)
		defer cancel()
		r.snapshot(ctx, f, a, func(known remediator.SnapshotResult) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if known.Until = a.Until; e.snapshot.Until.Equal(a.Until) { // else it was given up, and another one is taken
				e.snapshot = known
			}
		})
	}()
}

// snapshot waits for its place, which are shared fairly by namespaces, and is taken; tell is told of each.
func (r *Runner) snapshot(ctx context.Context, f *remediator.Facts, a remediator.Action, tell func(remediator.SnapshotResult)) {
	if r.Snapshot == nil {
		tell(remediator.SnapshotResult{Err: "this process takes no snapshots"})
		return
	}
	place := r.Places.Place(f.Owner.Namespace)
	if err := place.Take(ctx); err != nil {
		tell(remediator.SnapshotResult{Queued: true, Late: true})
		return
	}
	defer place.Give()
	tell(remediator.SnapshotResult{Taking: true})
	result, err := r.Snapshot(ctx, f, a)
	switch {
	case err == nil:
		tell(result)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		tell(remediator.SnapshotResult{Late: true})
	default:
		tell(remediator.SnapshotResult{Err: redact.Message(err.Error()), Next: remedy(err)})
	}
}

// remedy is what an error says that a human can do about it, "" where it says nothing.
func remedy(err error) string {
	var known interface{ Remedy() string }
	if errors.As(err, &known) {
		return known.Remedy()
	}
	return ""
}
