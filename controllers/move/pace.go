package move

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
)

// writeEvery is the shortest time between two statuses of a Move that differ only in how far it is. A move records many
// batches of objects a second, and nobody reads so fast.
const writeEvery = time.Second

// pace says when the status of each Move was last written for its progress alone. The zero value is ready for use.
type pace struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait returns how long the next status has to wait; where it is 0 the status is taken to be written now.
func (p *pace) wait(name types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := writeEvery - now.Sub(p.last[name]); left > 0 {
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

// counts says that a status tells nothing else than the one before but how far the move is. They are compared as they are
// stored: a stored time has whole seconds.
func counts(old, status v1alpha1.MoveStatus) bool {
	rest := func(s v1alpha1.MoveStatus) []byte {
		s.Counts, s.Message, s.WaitingFor, s.LogSequence = v1alpha1.MoveCounts{}, "", nil, 0
		s.ObservedGeneration, s.Conditions = 0, nil // publish derives them
		raw, err := json.Marshal(s)
		if err != nil {
			return nil // texts, numbers and times can be encoded
		}
		return raw
	}
	return bytes.Equal(rest(old), rest(status))
}
