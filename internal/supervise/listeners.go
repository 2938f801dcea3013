package supervise

import "sync"

// Bells tell whoever drives something that the log holds more about it than it may know. The zero value is ready for use.
// They are safe for concurrent use.
type Bells struct {
	mu    sync.Mutex
	bells map[string]chan uint64
}

// Hang begins to listen for news of an id: ring has the sequence of the newest commit. At most one listens at a time.
func (b *Bells) Hang(id string) (ring <-chan uint64, down func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bells == nil {
		b.bells = make(map[string]chan uint64)
	}
	bell := make(chan uint64, 1)
	b.bells[id] = bell
	return bell, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.bells[id] == bell {
			delete(b.bells, id)
		}
	}
}

// Ring says that the log holds a commit about an id. It does not block. Sequences come in their order.
func (b *Bells) Ring(id string, seq uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bell := b.bells[id]
	if bell == nil {
		return
	}
	select {
	case <-bell: // an older one
	default:
	}
	bell <- seq
}
