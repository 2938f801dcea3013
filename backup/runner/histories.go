package runner

import (
	"context"
	"sync"

	"scute.dev/aggregate"
	"scute.dev/backup/schedule"
)

type root = aggregate.Root[schedule.Event, *schedule.State]

// histories caches the schedules that were driven, because they exist for years and each backup has
// several commits. The zero value is empty.
type histories struct {
	readMu sync.Mutex // serializes reading whole histories, which are in memory meanwhile
	roots  sync.Map   // *root by ID
}

// acquire removes a schedule from the cache, or returns nil. The caller owns it until release.
func (h *histories) acquire(id string) *root {
	kept, _ := h.roots.LoadAndDelete(id)
	r, _ := kept.(*root)
	return r
}

// release returns a schedule to the cache. Its state must equal the state in the log. A schedule
// that has ended is not cached, because it is not driven again.
func (h *histories) release(r *root) {
	if !r.State.Finished() {
		h.roots.Store(r.Name.ID, r)
	}
}

func (h *histories) read(ctx context.Context, r *root) error {
	if r.Seq == 0 {
		h.readMu.Lock()
		defer h.readMu.Unlock()
	}
	return r.Read(ctx)
}
