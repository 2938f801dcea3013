package feed

import (
	"slices"
	"sync"

	"scute.dev/eventlog"
)

// Limits of the cached past states: their number, and the total bytes of the commits they were computed from. States larger than maxPastBytes are not
// cached, so at most one of them is in memory.
const (
	maxPast      = 3
	maxPastBytes = 64 << 20
)

// pastCache caches the past states used last, so that moving forward from one of them needs no replay from the beginning.
type pastCache struct {
	mu       sync.Mutex
	cached   []*Snapshot // least recently used first
	maxBytes int64       // bytes; 0 is maxPastBytes
}

func (p *pastCache) at(commits *Spool, seq uint64, fn func(*Snapshot) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.remove(seq)
	if err := commits.Replay(w.Seq, seq, func(r eventlog.Record) error { w.Apply(r); return nil }); err != nil {
		return err // the partial state is discarded
	}
	p.put(commits, w)
	return fn(w)
}

// put caches a state and evicts the least recently used ones above the limit.
func (p *pastCache) put(commits *Spool, w *Snapshot) {
	p.cached = append(p.cached, w)
	bytes := int64(0)
	for i, w := range slices.Backward(p.cached) {
		if bytes += commits.Bytes(w.Seq); bytes > p.limit() {
			p.cached = slices.Delete(p.cached, 0, i+1)
			return
		}
	}
}

func (p *pastCache) limit() int64 {
	if p.maxBytes == 0 {
		return maxPastBytes
	}
	return p.maxBytes
}

// remove removes the cached state nearest before a commit from the cache and returns it. Without one it returns an empty Snapshot.
func (p *pastCache) remove(seq uint64) *Snapshot {
	best := -1
	for i, w := range p.cached {
		if w.Seq <= seq && (best < 0 || w.Seq >= p.cached[best].Seq) {
			best = i
		}
	}
	if best < 0 {
		if len(p.cached) == maxPast {
			p.cached = slices.Delete(p.cached, 0, 1)
		}
		return NewSnapshot()
	}
	w := p.cached[best]
	p.cached = slices.Delete(p.cached, best, best+1)
	return w
}
