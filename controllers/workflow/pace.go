package workflow

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// publishEvery bounds how often the status of one run is computed and written while it changes: a run may append
// thousands of events a second.
const publishEvery = time.Second

// publishBytes is the size of a WorkflowRun whose status may be written that often. A larger one is written less often by as much: with
// each write of its status etcd stores all of it, and every watch gets it.
const publishBytes = 64 << 10

// often is how often the status of a cached WorkflowRun may be written, by about the size of its spec.
func often(w *v1alpha1.WorkflowRun) time.Duration {
	size, _ := strconv.Atoi(w.Annotations[specBytes]) // 0 of none
	return max(publishEvery, publishEvery*time.Duration(size)/publishBytes)
}

// pace remembers when the status of each WorkflowRun was last written. The zero value is ready.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]published
}

type published struct {
	at    time.Time
	phase v1alpha1.RunPhase
}

// hold says how long to wait before the next status is written; nothing for a new phase, which is what people wait for.
func (p *pace) hold(key types.NamespacedName, phase v1alpha1.RunPhase, every time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.last[key]
	if wait := every - now.Sub(last.at); ok && last.phase == phase && wait > 0 {
		return wait
	}
	if p.last == nil {
		p.last = make(map[types.NamespacedName]published)
	}
	p.last[key] = published{at: now, phase: phase}
	return 0
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
