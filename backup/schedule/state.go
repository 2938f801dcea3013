package schedule

import (
	"slices"
	"time"
)

// State is the state of a schedule. The zero value is a schedule that was not configured. Only Apply changes it.
type State struct {
	Spec   Spec
	Holder string // the incarnation that drives it
	// Since is when the schedule was last set, changed or resumed. Nothing is due before.
	Since   time.Time
	EndedAt time.Time
	// LastDue is the last time of the schedule for which a backup was started. LastSuccess is when the last backup was complete.
	LastDue, LastSuccess time.Time
	// Asked is the value of the last request. Begun is the last value for which a backup was started.
	Asked, Begun string

	// Running is the backup that is being made, or nil. After a failure it is retained for the retry.
	Running *Started
	// Working means that an attempt at Running has begun and is not known to have ended.
	Working bool
	// Elsewhere means that the backup that is being made was started at an earlier destination.
	Elsewhere bool
	// Failures is the number of failed attempts since the last success. FailedAt is when the last attempt failed.
	Failures int
	FailedAt time.Time
	Problem  Problem
	// Kept are the backups at the destination, in the order of their completion. Expiring are about to be deleted. Incomplete are failed attempts
	// that may have files there.
	Kept       []Kept
	Expiring   []Backup
	Incomplete []Attempt
	// Removal is why a deletion failed, RemovalAt is when it failed, and Removals is how often in succession.
	Removal   Problem
	RemovalAt time.Time
	Removals  int
}

// Kept is a backup at the destination. It has only the number of Clusters, because there may be thousands of backups of hundreds of Clusters each.
type Kept struct {
	Backup
	Clusters int
}

func kept(b Backup) Kept {
	k := Kept{Backup: b, Clusters: len(b.Clusters)}
	k.Backup.Clusters = nil
	return k
}

// Attempt is a failed attempt at the backup for Due or Request.
type Attempt struct {
	ID, Place string
	Due       time.Time
	Request   string
	// Superseded means that a backup has succeeded since.
	Superseded bool
}

// ClaimedBy returns the incarnation that drives the schedule.
func (s *State) ClaimedBy() string { return s.Holder }

// Known reports whether the schedule was configured.
func (s *State) Known() bool { return s.Spec.Schedule != "" }

// Finished reports whether the resource was deleted.
func (s *State) Finished() bool { return !s.EndedAt.IsZero() }

// Apply applies an event.
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

// configure sets the spec. It stops tracking backups at an earlier destination.
func (s *State) configure(spec Spec, at time.Time) {
	if spec.Schedule != s.Spec.Schedule || spec.TimeZone != s.Spec.TimeZone || spec.Suspend != s.Spec.Suspend {
		s.Since = at
	}
	if s.Known() && !spec.Destination.Same(s.Spec.Destination) {
		s.Kept, s.Expiring, s.Incomplete, s.Elsewhere = nil, nil, nil, s.Working
	}
	// The change may have corrected the cause of a failure, so the retry is due at once.
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

// complete adds a complete backup. Backups are in the order of the log, not of the clock.
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

// found adds a backup that was complete although its attempt counted as failed. A backup that has failed since is still retried if it is for another
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

// over ends the backup that is being made.
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

// expire moves backups to Expiring: from now on their files may be incomplete.
func (s *State) expire(ids []string) {
	s.Kept = slices.DeleteFunc(s.Kept, func(b Kept) bool {
		if !slices.Contains(ids, b.ID) {
			return false
		}
		s.Expiring = append(s.Expiring, b.Backup)
		return true
	})
}

// removing reports whether the destination may have files to delete.
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
