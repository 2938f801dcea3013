package supervise

import "sync"

// Listeners tell the driver of something that the log holds more about it than it may know. The zero value is ready for use.
// They are safe for concurrent use.
type Listeners struct {
	mu        sync.Mutex
	listeners map[string]chan uint64
}

// Listen begins to listen for news of an id: news has the sequence of the newest commit. At most one listens at a time.
func (l *Listeners) Listen(id string) (news <-chan uint64, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners == nil {
		l.listeners = make(map[string]chan uint64)
	}
	own := make(chan uint64, 1)
	l.listeners[id] = own
	return own, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.listeners[id] == own {
			delete(l.listeners, id)
		}
	}
}

// Tell says that the log holds a commit about an id. It does not block. Sequences come in their order.
func (l *Listeners) Tell(id string, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	listener := l.listeners[id]
	if listener == nil {
		return
	}
	select {
	case <-listener: // an older one
	default:
	}
	listener <- seq
}
