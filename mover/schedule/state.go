package schedule

import (
	"slices"
	"time"
)

// State is everything that is known of one schedule. The zero value is one that nobody asked for. It is changed by Apply alone.
type State struct {
	Spec   Spec
	Holder string // incarnation that acts on it
	// Since is when the schedule was set, changed or resumed last: nothing is due before.
	Since   time.Time
	EndedAt time.Time
	// LastDue is the time of the schedule for which a backup was begun last, LastSuccess when one was complete last.
	LastDue, LastSuccess time.Time
	// Asked is the value that somebody asked with last, Begun the one for which a backup was begun.
	Asked, Begun string

	// Running is the backup that is made; nil for none. After a failure it is retained as the one that is tried again.
	Running *Started
	// Working says that an attempt at Running has begun, and has not ended as far as it is known.
	Working bool
	// Failures counts the failed attempts at it since the last success, FailedAt is when the last one ended.
	Failures int
	FailedAt time.Time
	Problem  Problem
	// Kept are the backups at the destination, the oldest first, and Incomplete what attempts that failed may have left there.
	Kept       []Backup
	Incomplete []Attempt
	// Removal is why something could not be removed, RemovalAt when that was, and Removals how often in succession.
	Removal   Problem
	RemovalAt time.Time
	Removals  int
}

// Attempt is one that failed.
type Attempt struct{ ID, Place string }

// ClaimedBy is the incarnation that acts on the schedule.
func (s *State) ClaimedBy() string { return s.Holder }

// Known says that somebody asked for the schedule.
func (s *State) Known() bool { return s.Spec.Schedule != "" }

// Finished says that the resource is gone.
func (s *State) Finished() bool { return !s.EndedAt.IsZero() }

// Apply takes one event in.
func (s *State) Apply(event Event, at time.Time) {
	switch e := event.(type) {
	case Configured:
		s.configure(e.Spec, at)
	case Asked:
		s.Asked = e.Value
	case Claimed:
		s.Holder = e.Holder
	case Started:
		s.start(e)
	case Completed:
		s.Kept = append(s.Kept, e.Backup)
		slices.SortFunc(s.Kept, func(a, b Backup) int { return a.TakenAt.Compare(b.TakenAt) })
		s.LastSuccess = at
		s.Running, s.Working, s.Failures, s.FailedAt, s.Problem = nil, false, 0, time.Time{}, Problem{}
	case Failed:
		if s.Running != nil && s.Running.ID == e.ID {
			s.Incomplete = append(s.Incomplete, Attempt{e.ID, s.Running.Place})
			s.Working = false
			s.Failures++
			s.FailedAt, s.Problem = at, e.Problem
		}
	case Removed:
		s.removed(e)
	case RemovalFailed:
		s.Removal, s.RemovalAt = e.Problem, at
		s.Removals++
	case Ended:
		s.EndedAt, s.Running, s.Working, s.Problem, s.Removal = at, nil, false, Problem{}, Problem{}
	}
}

// configure takes another spec. What is at an earlier destination is no longer looked after.
func (s *State) configure(spec Spec, at time.Time) {
	if spec.Schedule != s.Spec.Schedule || spec.TimeZone != s.Spec.TimeZone || spec.Suspend != s.Spec.Suspend {
		s.Since = at
	}
	if s.Known() && !spec.Destination.Same(s.Spec.Destination) {
		s.Kept, s.Incomplete = nil, nil
	}
	// What failed may be what was corrected: it is tried again at once.
	s.Spec, s.Failures, s.FailedAt, s.Removals, s.RemovalAt, s.Removal = spec, 0, time.Time{}, 0, time.Time{}, Problem{}
}

func (s *State) start(e Started) {
	s.Running, s.Working = &e, true
	if !e.Due.IsZero() {
		s.LastDue = e.Due
	}
	if e.Request != "" {
		s.Begun = e.Request
	}
}

func (s *State) removed(e Removed) {
	s.Removal, s.RemovalAt, s.Removals = Problem{}, time.Time{}, 0
	s.Kept = slices.DeleteFunc(s.Kept, func(b Backup) bool {
		return slices.ContainsFunc(e.Backups, func(gone Backup) bool { return gone.ID == b.ID }) || slices.Contains(e.Foreign, b.Place)
	})
	s.Incomplete = slices.DeleteFunc(s.Incomplete, func(a Attempt) bool {
		return slices.Contains(e.Incomplete, a.Place) || slices.Contains(e.Foreign, a.Place)
	})
}
