package projection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// window is the time over which the commits of a namespace are counted.
const window = time.Hour

const (
	slots = 60
	slot  = window / slots
)

// Limits of one namespace within a window. Zero is no limit.
type Limits struct {
	Events, Bytes int
}

// Usage is a view of the log. It counts the commits about runs, moves, pauses and backup schedules by namespace, which is the prefix of their ID.
type Usage struct {
	limits     Limits
	mu         sync.Mutex
	namespaces map[string]*namespaceUsage
	// kept is the number of spaces after the last drop.
	kept int
}

// namespaceUsage contains what one namespace appended, in slots of a minute.
type namespaceUsage struct {
	at     [slots]int64 // the minute of each slot
	events [slots]int
	bytes  [slots]int
}

// NewUsage returns an empty Usage.
func NewUsage(limits Limits) *Usage {
	return &Usage{limits: limits, namespaces: make(map[string]*namespaceUsage)}
}

// Apply counts a commit, by the time at which the log stored it.
func (u *Usage) Apply(r eventlog.Record) {
	switch r.Aggregate.Kind {
	case eventlog.KindRun, eventlog.KindMove, eventlog.KindPause, eventlog.KindBackup:
	default:
		return
	}
	namespace, _, _ := strings.Cut(r.Aggregate.ID, "/")
	u.count(namespace, r.Stored, len(r.Types()), len(r.Data()))
}

func (u *Usage) count(namespace string, at time.Time, events, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	minute := at.Unix() / int64(slot.Seconds())
	s := u.namespaces[namespace]
	if s == nil {
		u.drop(minute)
		s = new(namespaceUsage)
		u.namespaces[namespace] = s
	}
	i := minute % slots
	if s.at[i] != minute {
		s.at[i], s.events[i], s.bytes[i] = minute, 0, 0
	}
	s.events[i] += events
	s.bytes[i] += bytes
}

// drop deletes the spaces without commits in the window. It waits until their number has doubled, because namespaces are created and deleted.
func (u *Usage) drop(now int64) {
	if len(u.namespaces) < 2*u.kept+slots {
		return
	}
	maps.DeleteFunc(u.namespaces, func(_ string, s *namespaceUsage) bool { return slices.Max(s.at[:]) <= now-slots })
	u.kept = len(u.namespaces)
}

// Exceeded returns which limit a namespace has reached, and until when, or "" if none.
func (u *Usage) Exceeded(namespace string, now time.Time) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.namespaces[namespace]
	if s == nil {
		return ""
	}
	for _, l := range []struct {
		limit int
		used  *[slots]int
		noun  string
	}{{u.limits.Events, &s.events, "events"}, {u.limits.Bytes, &s.bytes, "bytes"}} {
		if until, over := s.exceeded(l.limit, l.used, now); over {
			return fmt.Sprintf("namespace %s appended %d %s to the log within an hour, the limit: nothing more is started there until %s",
				namespace, l.limit, l.noun, until.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// exceeded reports whether a limit is reached. until is when it is no longer reached if the namespace appends nothing more.
func (s *namespaceUsage) exceeded(limit int, used *[slots]int, now time.Time) (until time.Time, exceeded bool) {
	if limit <= 0 {
		return until, false
	}
	this := now.Unix() / int64(slot.Seconds())
	sum := 0
	for minute := this; minute > this-slots; minute-- { // the latest first
		if i := minute % slots; s.at[i] == minute {
			if sum += used[i]; sum >= limit {
				return time.Unix((minute+slots)*int64(slot.Seconds()), 0), true
			}
		}
	}
	return until, false
}
