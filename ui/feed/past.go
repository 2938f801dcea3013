package feed

import (
	"slices"
	"sync"

	"scute.dev/eventlog"
)

// Limits of the cached past states: their number, and the total bytes of the commits they were computed from. States larger than momentBytes are not
// cached, so at most one of them is in memory.
const (
	moments     = 3
	momentBytes = 64 << 20
)

// past caches the past states used last, so that moving forward from one of them needs no replay from the beginning.
type past struct {
	mu   sync.Mutex
	kept []*World // least recently used first
	most int64    // bytes; 0 is momentBytes
}

func (p *past) at(commits *Spool, seq uint64, fn func(*World) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.take(seq)
	if err := commits.Replay(w.Seq, seq, func(r eventlog.Record) error { w.Apply(r); return nil }); err != nil {
		return err // the partial state is discarded
	}
	p.keep(commits, w)
	return fn(w)
}

// keep caches a state and evicts the least recently used ones above the limit.
func (p *past) keep(commits *Spool, w *World) {
	p.kept = append(p.kept, w)
	bytes := int64(0)
	for i, w := range slices.Backward(p.kept) {
		if bytes += commits.Bytes(w.Seq); bytes > p.bound() {
			p.kept = slices.Delete(p.kept, 0, i+1)
			return
		}
	}
}

func (p *past) bound() int64 {
	if p.most == 0 {
		return momentBytes
	}
	return p.most
}

// take removes the cached state nearest before a commit from the cache and returns it. Without one it returns an empty World.
func (p *past) take(seq uint64) *World {
	best := -1
	for i, w := range p.kept {
		if w.Seq <= seq && (best < 0 || w.Seq >= p.kept[best].Seq) {
			best = i
		}
	}
	if best < 0 {
		if len(p.kept) == moments {
			p.kept = slices.Delete(p.kept, 0, 1)
		}
		return NewWorld()
	}
	w := p.kept[best]
	p.kept = slices.Delete(p.kept, best, best+1)
	return w
}
