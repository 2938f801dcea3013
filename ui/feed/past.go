package feed

import (
	"slices"
	"sync"

	"scute.dev/eventlog"
)

// Bounds of the moments of the past that are kept: how many, and the bytes of the commits that they came from, of all together. A moment of
// more than that is made again each time, so that a log of any size has no more than one of those in memory, while it is looked at.
const (
	moments     = 3
	momentBytes = 64 << 20
)

// past keeps the moments that were looked at last: who moves forward from one of them needs no replay from the beginning.
type past struct {
	mu   sync.Mutex
	kept []*World // the one that was used last is the last
	most int64    // bytes; 0 is momentBytes
}

func (p *past) at(commits *Spool, seq uint64, fn func(*World) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.take(seq)
	if err := commits.Replay(w.Seq, seq, func(r eventlog.Record) error { w.Apply(r); return nil }); err != nil {
		return err // what was begun is thrown away
	}
	p.keep(commits, w)
	return fn(w)
}

// keep keeps a moment, and forgets those that were not used for longest until what is kept is within its bounds.
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

// take is the nearest moment before a commit, which is not kept any more, or an empty world.
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
