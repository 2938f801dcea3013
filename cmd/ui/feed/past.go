package feed

import (
	"sync"

	"scute.dev/cmd/ui/spool"
	"scute.dev/cmd/ui/world"
	"scute.dev/eventlog"
)

// moments bounds how many moments of the past are kept.
const moments = 3

// past keeps the moments that were looked at last: who moves forward from one of them needs no replay from the beginning.
type past struct {
	mu   sync.Mutex
	kept []*world.World // the one that was used last is the last
}

func (p *past) at(commits *spool.Spool, seq uint64, fn func(*world.World) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.take(seq)
	if err := commits.Replay(w.Seq, seq, func(r eventlog.Record) error { w.Apply(r); return nil }); err != nil {
		return err // what was begun is thrown away
	}
	p.kept = append(p.kept, w)
	return fn(w)
}

// take is the nearest moment before a commit, which is not kept any more, or an empty world.
func (p *past) take(seq uint64) *world.World {
	best := -1
	for i, w := range p.kept {
		if w.Seq <= seq && (best < 0 || w.Seq >= p.kept[best].Seq) {
			best = i
		}
	}
	if best < 0 {
		if len(p.kept) == moments {
			p.kept = append(p.kept[:0], p.kept[1:]...)
		}
		return world.New()
	}
	w := p.kept[best]
	p.kept = append(p.kept[:best], p.kept[best+1:]...)
	return w
}
