package resource

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PublishInterval is the shortest interval between two updates of a status in the same phase,
// because an object may append thousands of events a second.
const PublishInterval = time.Second

// Pace bounds how often the status of each resource is written. The zero value is ready for use and
// safe for concurrent use.
type Pace struct {
	mu   sync.Mutex
	last map[client.ObjectKey]published
}

type published struct {
	at    time.Time
	phase string
}

// Delay returns how long the next update of a status must wait. If it returns 0, it counts the
// status as written now. A new phase does not wait, because users wait for it.
func (p *Pace) Delay(key client.ObjectKey, phase string, interval time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	last, ok := p.last[key]
	if wait := interval - now.Sub(last.at); ok && last.phase == phase && wait > 0 {
		return wait
	}
	if p.last == nil {
		p.last = make(map[client.ObjectKey]published)
	}
	p.last[key] = published{at: now, phase: phase}
	return 0
}

// Forget deletes what is stored about a resource.
func (p *Pace) Forget(key client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
