package supervise

import (
	"context"
	"slices"
	"sync"
)

// Places bound what works at once. They are shared fairly: a free place goes to the namespace that holds the fewest, of
// those to the one that was served longest ago, and within a namespace to the one that asked first. A namespace that holds
// less than an equal share of them gets one although all are taken, up to twice the limit in all.
//
// A nil *Places has room for everybody.
type Places struct {
	mu    sync.Mutex
	share share
	// queue has who waits, by namespace; turn has those namespaces, the one served longest ago first.
	queue map[string][]*Place
	turn  []string
}

// NewPlaces makes limit places; limit is 1 or more.
func NewPlaces(limit int) *Places {
	return &Places{share: newShare(limit), queue: make(map[string][]*Place)}
}

// Place is the right of one thing to work, which it asks for and gives back. It belongs to one goroutine. The zero value
// is held as soon as it is asked for.
type Place struct {
	places    *Places
	namespace string
	// granted is closed when the place is held; nil when it was not asked for.
	granted chan struct{}
}

// Place makes a place that is not asked for yet.
func (p *Places) Place(namespace string) *Place { return &Place{places: p, namespace: namespace} }

// Ask asks for the place; the channel is closed when it is held. Asking again changes nothing.
func (p *Place) Ask() <-chan struct{} {
	if p.granted != nil {
		return p.granted
	}
	p.granted = make(chan struct{})
	if p.places == nil {
		close(p.granted)
		return p.granted
	}
	p.places.enter(p)
	return p.granted
}

// Held says whether the place was granted.
func (p *Place) Held() bool {
	select {
	case <-p.granted: // never, where it is nil
		return true
	default:
		return false
	}
}

// Asked says whether the place was asked for and is not held yet.
func (p *Place) Asked() bool { return p.granted != nil && !p.Held() }

// Take asks for the place and waits until it is held. An error is the end of ctx; the place is not asked for then. A place that is free is
// held, whatever ctx is.
func (p *Place) Take(ctx context.Context) error {
	select {
	case <-p.Ask():
		return nil
	case <-ctx.Done():
		if p.Held() { // who was not kept waiting does not say so
			return nil
		}
		p.Give()
		return ctx.Err()
	}
}

// Give gives the place back, or no longer asks for it.
func (p *Place) Give() {
	if p.granted != nil && p.places != nil {
		p.places.leave(p)
	}
	p.granted = nil
}

func (p *Places) enter(place *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ns := place.namespace
	if len(p.queue[ns]) == 0 {
		p.turn = append(p.turn, ns)
	}
	p.queue[ns] = append(p.queue[ns], place)
	p.grant()
}

func (p *Places) leave(place *Place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ns := place.namespace
	if place.Held() {
		p.share.give(ns)
		p.grant()
		return
	}
	p.queue[ns] = slices.DeleteFunc(p.queue[ns], func(other *Place) bool { return other == place })
	if len(p.queue[ns]) == 0 {
		p.drop(ns)
	}
}

// grant hands out what is free.
func (p *Places) grant() {
	for {
		ns, ok := p.next()
		if !ok {
			return
		}
		first := p.queue[ns][0]
		p.queue[ns] = p.queue[ns][1:]
		p.drop(ns)
		if len(p.queue[ns]) > 0 {
			p.queue[ns], p.turn = slices.Clone(p.queue[ns]), append(p.turn, ns)
		}
		p.share.take(ns)
		close(first.granted)
	}
}

// next is the namespace whose turn it is.
func (p *Places) next() (best string, ok bool) {
	for _, ns := range p.turn {
		if p.share.admits(ns) && (!ok || p.share.held[ns] < p.share.held[best]) {
			best, ok = ns, true
		}
	}
	return best, ok
}

// drop takes a namespace out of those that wait; it comes in again at the end.
func (p *Places) drop(ns string) {
	p.turn = slices.DeleteFunc(p.turn, func(other string) bool { return other == ns })
	if len(p.queue[ns]) == 0 {
		delete(p.queue, ns)
	}
}
