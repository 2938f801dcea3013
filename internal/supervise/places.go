package supervise

import (
	"context"
	"slices"
	"sync"
)

// Places bounds concurrent work, and shares the places fairly between namespaces. A free place goes to the namespace that holds the fewest places, among
// these to the namespace that was served longest ago, and within a namespace to the first request. A namespace that holds less than an equal share
// gets a place although all are in use, up to twice the limit in all.
//
// A nil *Places has no limit.
type Places struct {
	mu    sync.Mutex
	share share
	// queue has the waiting places by namespace. turn has these namespaces; the first was served longest ago.
	queue map[string][]*Place
	turn  []string
}

// NewPlaces returns limit places; limit is 1 or more.
func NewPlaces(limit int) *Places {
	return &Places{share: newShare(limit), queue: make(map[string][]*Place)}
}

// Place is the right to work, which one goroutine requests and releases. The zero value is held as soon as it is requested.
type Place struct {
	places    *Places
	namespace string
	// granted is closed when the place is held. It is nil if the place was not requested.
	granted chan struct{}
}

// Place returns a place that is not requested yet.
func (p *Places) Place(namespace string) *Place { return &Place{places: p, namespace: namespace} }

// Ask requests the place, and returns a channel that is closed when the place is held. It is idempotent.
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

// Held reports whether the place was granted.
func (p *Place) Held() bool {
	select {
	case <-p.granted: // blocks if it is nil
		return true
	default:
		return false
	}
}

// Asked reports whether the place was requested and is not held yet.
func (p *Place) Asked() bool { return p.granted != nil && !p.Held() }

// Take requests the place and waits until it is held. If ctx ends first, it withdraws the request and returns the error of ctx. A free place is held
// even if ctx has ended.
func (p *Place) Take(ctx context.Context) error {
	select {
	case <-p.Ask():
		return nil
	case <-ctx.Done():
		if p.Held() { // both channels were ready
			return nil
		}
		p.Give()
		return ctx.Err()
	}
}

// Give releases the place, or withdraws the request.
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

// grant assigns the free places.
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

// next returns the namespace that gets the next place.
func (p *Places) next() (best string, ok bool) {
	for _, ns := range p.turn {
		if p.share.admits(ns) && (!ok || p.share.held[ns] < p.share.held[best]) {
			best, ok = ns, true
		}
	}
	return best, ok
}

// drop removes a namespace from turn, and from queue if no place of it waits.
func (p *Places) drop(ns string) {
	p.turn = slices.DeleteFunc(p.turn, func(other string) bool { return other == ns })
	if len(p.queue[ns]) == 0 {
		delete(p.queue, ns)
	}
}
