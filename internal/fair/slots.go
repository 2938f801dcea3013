package fair

import (
	"context"
	"sync"
)

// Slots limits concurrent work. A free slot is granted to the namespace that holds the fewest
// slots; among several, to the one that was granted a slot longest ago; and within a namespace to
// the first request. A namespace with less than an equal share gets a slot even if all are in use,
// until twice the limit is in use. A nil *Slots has no limit.
type Slots struct {
	mu      sync.Mutex
	share   share
	waiting *order[*Slot]
}

// NewSlots returns limit slots; limit is 1 or more.
func NewSlots(limit int) *Slots {
	return &Slots{share: newShare(limit), waiting: newOrder(func(s *Slot) string { return s.namespace })}
}

// Slot represents one goroutine's request for, and possession of, a slot. The zero value is granted
// as soon as it is requested.
type Slot struct {
	slots     *Slots
	namespace string
	// granted is closed when the slot is held. It is nil before the request.
	granted chan struct{}
}

// Slot returns a slot that is not requested yet.
func (p *Slots) Slot(namespace string) *Slot { return &Slot{slots: p, namespace: namespace} }

// Request requests the slot, and returns a channel that is closed when it is held. It is
// idempotent.
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

// Held reports whether the slot was granted.
func (p *Slot) Held() bool {
	select {
	case <-p.granted: // blocks if nil
		return true
	default:
		return false
	}
}

// Pending reports whether the slot was requested and is not held yet.
func (p *Slot) Pending() bool { return p.granted != nil && !p.Held() }

// Acquire requests the slot and waits for it. If ctx ends first, it withdraws the request and
// returns the error of ctx. A free slot is held even if ctx has ended.
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

// Release releases the slot, or withdraws the request.
func (p *Slot) Release() {
	if p.granted != nil && p.slots != nil {
		p.slots.release(p)
	}
	p.granted = nil
}

func (p *Slots) enqueue(place *Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Push(place)
	p.grant()
}

func (p *Slots) release(place *Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !place.Held() {
		p.waiting.Remove(place)
		return
	}
	p.share.release(place.namespace)
	p.grant()
}

func (p *Slots) grant() {
	for {
		next, ok := p.waiting.PopLowest(func(namespace string) (int, bool) {
			return p.share.held[namespace], p.share.admits(namespace)
		})
		if !ok {
			return
		}
		p.share.acquire(next.namespace)
		close(next.granted)
	}
}

// share counts slots by namespace. A namespace with less than an equal share of the limit, or
// nothing, gets a slot while all together hold less than twice the limit. So a tenant that never
// releases its slots does not block others.
type share struct {
	limit, total int
	held         map[string]int
}

func newShare(limit int) share { return share{limit: limit, held: make(map[string]int)} }

func (s *share) admits(namespace string) bool {
	held := s.held[namespace]
	return s.total < s.limit || s.total < 2*s.limit && (held == 0 || held < s.limit/len(s.held))
}

func (s *share) acquire(namespace string) {
	s.held[namespace]++
	s.total++
}

func (s *share) release(namespace string) {
	s.total--
	if s.held[namespace]--; s.held[namespace] == 0 {
		delete(s.held, namespace)
	}
}
