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
	// Elsewhere says that the backup that is made was begun at an earlier destination.
	Elsewhere bool
	// Failures counts the failed attempts at it since the last success, FailedAt is when the last one ended.
	Failures int
	FailedAt time.Time
	Problem  Problem
	// Kept are the backups at the destination, in the order in which they were complete; Expiring are about to be removed, and Incomplete
	// is what attempts that failed may have left there.
	Kept       []Kept
	Expiring   []Backup
	Incomplete []Attempt
	// Removal is why something could not be removed, RemovalAt when that was, and Removals how often in succession.
	Removal   Problem
	RemovalAt time.Time
	Removals  int
}

// Kept is a backup at the destination. How many Clusters it has is all that is retained of them: there may be thousands of backups of
// hundreds of Clusters each.
type Kept struct {
	Backup
	Clusters int
}

func kept(b Backup) Kept {
	k := Kept{Backup: b, Clusters: len(b.Clusters)}
	k.Backup.Clusters = nil
	return k
}

// Attempt is one that failed, at the backup for Due or Request.
type Attempt struct {
	ID, Place string
	Due       time.Time
	Request   string
	// Superseded says that a backup succeeded since.
	Superseded bool
}

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
		s.complete(e.Backup, at)
	case Failed:
		s.fail(e, at)
	case RemovalStarted:
		s.expire(e.Backups)
	case Removed:
		s.removed(e)
	case RemovalFailed:
		if s.removing() { // another destination may have been set meanwhile
			s.Removal, s.RemovalAt = e.Problem, at
			s.Removals++
		}
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
		s.Kept, s.Expiring, s.Incomplete, s.Elsewhere = nil, nil, nil, s.Working
	}
	// What failed may be what was corrected: it is tried again at once.
	s.Spec, s.Failures, s.FailedAt, s.Removals, s.RemovalAt, s.Removal = spec, 0, time.Time{}, 0, time.Time{}, Problem{}
}

func (s *State) start(e Started) {
	s.Running, s.Working, s.Elsewhere = &e, true, false
	if !e.Due.IsZero() {
		s.LastDue = e.Due
	}
	if e.Request != "" {
		s.Begun = e.Request
	}
}

// complete takes a backup in. The order is that of the log, whatever the clock said.
func (s *State) complete(b Backup, at time.Time) {
	if i := slices.IndexFunc(s.Incomplete, func(a Attempt) bool { return a.ID == b.ID }); i >= 0 {
		s.found(b, s.Incomplete[i])
		return
	}
	if !s.Elsewhere {
		s.Kept = append(s.Kept, kept(b))
		s.LastSuccess = at
		s.supersede()
	}
	s.over()
}

// found takes a backup in that was complete although its attempt counted as failed. It is not newer than what failed since for another
// time of the schedule.
func (s *State) found(b Backup, a Attempt) {
	s.Incomplete = slices.DeleteFunc(s.Incomplete, func(other Attempt) bool { return other.ID == b.ID })
	s.Kept = append(s.Kept, kept(b))
	s.LastSuccess = b.TakenAt
	s.supersede()
	if r := s.Running; r != nil && !s.Working && r.Due.Equal(a.Due) && r.Request == a.Request {
		s.over()
	}
}

func (s *State) supersede() {
	for i := range s.Incomplete {
		s.Incomplete[i].Superseded = true
	}
}

// over ends what is made.
func (s *State) over() {
	s.Running, s.Working, s.Elsewhere, s.Failures, s.FailedAt, s.Problem = nil, false, false, 0, time.Time{}, Problem{}
}

func (s *State) fail(e Failed, at time.Time) {
	if s.Running == nil || s.Running.ID != e.ID {
		return
	}
	if !s.Elsewhere && !e.Unwritten {
		s.Incomplete = append(s.Incomplete, Attempt{ID: e.ID, Place: s.Running.Place, Due: s.Running.Due, Request: s.Running.Request})
	}
	s.Working, s.Elsewhere = false, false
	s.Failures++
	s.FailedAt, s.Problem = at, e.Problem
}

// expire no longer keeps backups: from here on each of them may be half gone.
func (s *State) expire(ids []string) {
	s.Kept = slices.DeleteFunc(s.Kept, func(b Kept) bool {
		if !slices.Contains(ids, b.ID) {
			return false
		}
		s.Expiring = append(s.Expiring, b.Backup)
		return true
	})
}

// removing says that something is at the destination that must be removed.
func (s *State) removing() bool { return len(s.Expiring)+len(s.Incomplete) > 0 }

func (s *State) removed(e Removed) {
	s.Removal, s.RemovalAt, s.Removals = Problem{}, time.Time{}, 0
	gone := func(b Backup) bool {
		return slices.ContainsFunc(e.Backups, func(gone Backup) bool { return gone.ID == b.ID }) || slices.Contains(e.Foreign, b.Place)
	}
	s.Kept, s.Expiring = slices.DeleteFunc(s.Kept, func(b Kept) bool { return gone(b.Backup) }), slices.DeleteFunc(s.Expiring, gone)
	s.Incomplete = slices.DeleteFunc(s.Incomplete, func(a Attempt) bool {
		return slices.Contains(e.Incomplete, a.Place) || slices.Contains(e.Foreign, a.Place)
	})
}
