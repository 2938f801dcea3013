package runner

import (
	"context"
	"sync"

	"scute.dev/aggregate"
	"scute.dev/backup/schedule"
)

type root = aggregate.Root[schedule.Event, *schedule.State]

// histories caches the schedules that were driven, because a schedule exists for years, and each of
// its backups has several commits. The zero value is empty.
type histories struct {
	readMu sync.Mutex // serializes reading whole histories, because each is in memory meanwhile
	roots  sync.Map   // a *root for each ID
}

// acquire removes a schedule from the cache and returns it, or nil if it was not driven yet. The
// caller owns it until it calls release.
func (h *histories) acquire(id string) *root {
	kept, _ := h.roots.LoadAndDelete(id)
	r, _ := kept.(*root)
	return r
}

// release adds a schedule that is in the state of the log, unless it has ended, because then it is not driven again.
func (h *histories) release(r *root) {
	if !r.State.Finished() {
		h.roots.Store(r.Name.ID, r)
	}
}

// read applies the commits of the log.
func (h *histories) read(ctx context.Context, r *root) error {
	if r.Seq == 0 {
		h.readMu.Lock()
		defer h.readMu.Unlock()
	}
	return r.Read(ctx)
}
