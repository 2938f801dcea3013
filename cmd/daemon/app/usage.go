package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"scute.dev/eventlog"
)

// Usage is counted in slots of a minute over the last hour.
const (
	usageSlot  = time.Minute
	usageSlots = 60
)

// usageLimits apply to one namespace within an hour. Zero is no limit.
type usageLimits struct {
	Events, Bytes int
}

// usage is a view of the log that counts the commits of runs, moves, pauses and backup schedules by
// namespace. The namespace is the first part of an aggregate's ID.
type usage struct {
	limits     usageLimits
	mu         sync.Mutex
	namespaces map[string]*namespaceUsage
	// kept is the number of namespaces that remained after the last drop.
	kept int
}

type namespaceUsage struct {
	at     [usageSlots]int64 // minute since 1970 of each slot
	events [usageSlots]int
	bytes  [usageSlots]int
}

func newUsage(limits usageLimits) *usage {
	return &usage{limits: limits, namespaces: make(map[string]*namespaceUsage)}
}

// Apply counts a commit. It uses the time at which the log stored the commit.
func (u *usage) Apply(r eventlog.Record) {
	switch r.Aggregate.Kind {
	case eventlog.KindRun, eventlog.KindMove, eventlog.KindPause, eventlog.KindBackup:
	default:
		return
	}
	namespace, _, _ := strings.Cut(r.Aggregate.ID, "/")
	u.count(namespace, r.Stored, len(r.Types()), len(r.Data()))
}

func (u *usage) count(namespace string, at time.Time, events, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	minute := at.Unix() / int64(usageSlot.Seconds())
	s := u.namespaces[namespace]
	if s == nil {
		u.drop(minute)
		s = new(namespaceUsage)
		u.namespaces[namespace] = s
	}
	i := minute % usageSlots
	if s.at[i] != minute {
		s.at[i], s.events[i], s.bytes[i] = minute, 0, 0
	}
	s.events[i] += events
	s.bytes[i] += bytes
}

// drop deletes the namespaces that had no commits in the last hour. It does so only when the number
// of namespaces has doubled since the last deletion, so that its average cost is low.
func (u *usage) drop(now int64) {
	if len(u.namespaces) < 2*u.kept+usageSlots {
		return
	}
	maps.DeleteFunc(u.namespaces, func(_ string, s *namespaceUsage) bool { return slices.Max(s.at[:]) <= now-usageSlots })
	u.kept = len(u.namespaces)
}

// Exceeded returns a message if a namespace has reached a limit, otherwise "". The message names
// the limit, and when the namespace may append again.
func (u *usage) Exceeded(namespace string, now time.Time) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.namespaces[namespace]
	if s == nil {
		return ""
	}
	for _, l := range []struct {
		limit int
		used  *[usageSlots]int
		noun  string
	}{{u.limits.Events, &s.events, "events"}, {u.limits.Bytes, &s.bytes, "bytes"}} {
		if until, over := s.exceeded(l.limit, l.used, now); over {
			return fmt.Sprintf("namespace %s appended %d %s to the log within an hour, the limit: nothing more is started there until %s",
				namespace, l.limit, l.noun, until.UTC().Format(time.RFC3339))
		}
	}
	return ""
}

// exceeded reports whether a limit is reached. until is when the usage falls below the limit again
// if nothing more is appended.
func (s *namespaceUsage) exceeded(limit int, used *[usageSlots]int, now time.Time) (until time.Time, exceeded bool) {
	if limit <= 0 {
		return until, false
	}
	this := now.Unix() / int64(usageSlot.Seconds())
	sum := 0
	for minute := this; minute > this-usageSlots; minute-- { // the latest first
		if i := minute % usageSlots; s.at[i] == minute {
			if sum += used[i]; sum >= limit {
				return time.Unix((minute+usageSlots)*int64(usageSlot.Seconds()), 0), true
			}
		}
	}
	return until, false
}
