package move

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// writeInterval is the shortest interval between two updates of a Move's status that change only its progress. A move records many batches of objects a
// second.
const writeInterval = time.Second

// pace stores when the status of each Move was last written only for its progress. The zero value is ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait returns how long the next status must wait. If it returns 0, it counts the status as written now.
func (p *pace) wait(name types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := writeInterval - now.Sub(p.last[name]); left > 0 {
		return left
	}
	if p.last == nil {
		p.last = make(map[types.NamespacedName]time.Time)
	}
	p.last[name] = now
	return 0
}

func (p *pace) forget(name types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, name)
}

// differsOnlyInProgress reports whether two statuses differ only in the progress of the move. It compares them encoded, because a stored time has whole seconds.
func differsOnlyInProgress(old, status v1alpha1.MoveStatus) bool {
	rest := func(s v1alpha1.MoveStatus) []byte {
		s.Counts, s.Message, s.WaitingFor, s.LogSequence = v1alpha1.MoveCounts{}, "", nil, 0
		s.ObservedGeneration, s.Conditions = 0, nil // publish derives them
		raw, err := json.Marshal(s)
		if err != nil {
			return nil // unreachable: strings, numbers and times can be encoded
		}
		return raw
	}
	return bytes.Equal(rest(old), rest(status))
}
