package workflow

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// publishInterval is the shortest interval between two updates of the status of a run, because a run may append thousands of events a second.
const publishInterval = time.Second

// publishBytes is the largest WorkflowRun whose status is updated every publishInterval. For larger ones the interval grows with their size, because
// each update of the status stores the whole object in etcd and sends it to every watch.
const publishBytes = 64 << 10

// publishIntervalFor returns the interval between updates of the status of a cached WorkflowRun, by the approximate size of its spec.
func publishIntervalFor(w *v1alpha1.WorkflowRun) time.Duration {
	size, _ := strconv.Atoi(w.Annotations[specBytes]) // 0 without the annotation
	return max(publishInterval, publishInterval*time.Duration(size)/publishBytes)
}

// pace stores when the status of each WorkflowRun was last written. The zero value is ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]published
}

type published struct {
	at    time.Time
	phase v1alpha1.RunPhase
}

// delay returns how long the next update of the status must wait. A new phase does not wait, because users wait for it.
func (p *pace) delay(key types.NamespacedName, phase v1alpha1.RunPhase, every time.Duration, now time.Time) time.Duration {
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
