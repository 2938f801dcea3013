package supervise

import (
	"context"
	"slices"
	"sync"
)

// Slots bounds concurrent work, and shares the places fairly between namespaces. A free place goes to the namespace that holds the fewest places, among
// these to the namespace that was served longest ago, and within a namespace to the first request. A namespace that holds less than an equal share
// gets a place although all are in use, up to twice the limit in all.
//
// A nil *Slots has no limit.
type Slots struct {
	mu    sync.Mutex
	share share
	// queue has the waiting places by namespace. turn has these namespaces; the first was served longest ago.
	queue map[string][]*Slot
	turn  []string
}

// NewSlots returns limit places; limit is 1 or more.
func NewSlots(limit int) *Slots {
	return &Slots{share: newShare(limit), queue: make(map[string][]*Slot)}
}

// Slot is the right to work, which one goroutine requests and releases. The zero value is held as soon as it is requested.
type Slot struct {
	slots     *Slots
	namespace string
	// granted is closed when the place is held. It is nil if the place was not requested.
	granted chan struct{}
}

// Slot returns a place that is not requested yet.
func (p *Slots) Slot(namespace string) *Slot { return &Slot{slots: p, namespace: namespace} }

// Request requests the place, and returns a channel that is closed when the place is held. It is idempotent.
func (p *Slot) Request() <-chan struct{} {
	if p.granted != nil {
		return p.granted
	}
	p.granted = make(chan struct{})
	if p.slots == nil {
		close(p.granted)
		return p.granted
	}
	p.slots.enqueue(p)
	return p.granted
}

// Held reports whether the place was granted.
func (p *Slot) Held() bool {
	select {
	case <-p.granted: // blocks if it is nil
		return true
	default:
		return false
	}
}

// Pending reports whether the place was requested and is not held yet.
func (p *Slot) Pending() bool { return p.granted != nil && !p.Held() }

// Acquire requests the place and waits until it is held. If ctx ends first, it withdraws the request and returns the error of ctx. A free place is held
// even if ctx has ended.
func (p *Slot) Acquire(ctx context.Context) error {
	select {
	case <-p.Request():
		return nil
	case <-ctx.Done():
		if p.Held() { // both channels were ready
			return nil
		}
		p.Release()
		return ctx.Err()
	}
}

// Release releases the place, or withdraws the request.
func (p *Slot) Release() {
	if p.granted != nil && p.slots != nil {
		p.slots.release(p)
	}
	p.granted = nil
}

func (p *Slots) enqueue(place *Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ns := place.namespace
	if len(p.queue[ns]) == 0 {
		p.turn = append(p.turn, ns)
	}
	p.queue[ns] = append(p.queue[ns], place)
	p.grant()
}

func (p *Slots) release(place *Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ns := place.namespace
	if place.Held() {
		p.share.release(ns)
		p.grant()
		return
	}
	p.queue[ns] = slices.DeleteFunc(p.queue[ns], func(other *Slot) bool { return other == place })
	if len(p.queue[ns]) == 0 {
		p.drop(ns)
	}
}

// grant assigns the free places.
func (p *Slots) grant() {
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
		p.share.acquire(ns)
		close(first.granted)
	}
}

// next returns the namespace that gets the next place.
func (p *Slots) next() (best string, ok bool) {
	for _, ns := range p.turn {
		if p.share.admits(ns) && (!ok || p.share.held[ns] < p.share.held[best]) {
			best, ok = ns, true
		}
	}
	return best, ok
}

// drop removes a namespace from turn, and from queue if no place of it waits.
func (p *Slots) drop(ns string) {
	p.turn = slices.DeleteFunc(p.turn, func(other string) bool { return other == ns })
	if len(p.queue[ns]) == 0 {
		delete(p.queue, ns)
	}
}
