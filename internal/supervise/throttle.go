package supervise

import "sync"

// Throttled says why something starts nothing at the moment although it could. The zero value is not throttled.
type Throttled struct {
	// Reason is one of the constants below.
	Reason  string
	Message string
}

// The reasons for which something is throttled.
const (
	// NoFreePlace: as many work as may at once.
	NoFreePlace = "NoFreePlace"
	// TooManyUnfinished: as many are driven as may be at once, most of which wait.
	TooManyUnfinished = "TooManyUnfinished"
	// QuotaExceeded: the namespace has appended as much to the log as it may.
	QuotaExceeded = "QuotaExceeded"
)

// Throttles keep why each of many is throttled. The zero value has none that is. They are safe for concurrent use.
type Throttles struct {
	mu  sync.Mutex
	why map[string]Throttled
}

// Of says whether one of them waits for others, and for what.
func (t *Throttles) Of(id string) Throttled {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.why[id]
}

// Set says whether that is news.
func (t *Throttles) Set(id string, why Throttled) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case why == t.why[id]:
		return false
	case why == Throttled{}:
		delete(t.why, id)
	case t.why == nil:
		t.why = map[string]Throttled{id: why}
	default:
		t.why[id] = why
	}
	return true
}
