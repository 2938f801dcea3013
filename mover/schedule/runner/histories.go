package runner

import (
	"context"
	"sync"

	"scute.dev/aggregate"
	"scute.dev/mover/schedule"
)

type root = aggregate.Root[schedule.Event, *schedule.State]

// histories are schedules as they were driven last: a schedule lives for years, and each of its backups is several commits, which are
// read once. The zero value has none.
type histories struct {
	reading sync.Mutex // the whole history of a schedule, all of which is in memory meanwhile

	mu   sync.Mutex
	kept map[string]*root
}

// take is that of a schedule, nil if it was not driven yet. Nobody else has it until it is kept again.
func (h *histories) take(id string) *root {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.kept[id]
	delete(h.kept, id)
	return kept
}

// keep keeps one that is as the log has it. One that has ended is not driven again.
func (h *histories) keep(r *root) {
	if r.State.Finished() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept == nil {
		h.kept = make(map[string]*root)
	}
	h.kept[r.Name.ID] = r
}

// read takes in what the log has.
func (h *histories) read(ctx context.Context, r *root) error {
	if r.Seq == 0 {
		h.reading.Lock()
		defer h.reading.Unlock()
	}
	return r.Read(ctx)
}
