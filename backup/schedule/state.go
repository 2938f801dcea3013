package schedule

import (
	"slices"
	"time"
)

// State is the state of a schedule. The zero value is a schedule that was not configured. Only
// Apply changes it.
type State struct {
	Spec   Spec
	Holder string // the incarnation that drives it
	// Since is when the schedule was last set, changed or resumed. Nothing is due before.
	Since   time.Time
	EndedAt time.Time
	// LastDue is the schedule's last time for which a backup was started. LastSuccess is when the
	// last backup was complete.
	LastDue, LastSuccess time.Time
	// LastRequest is the last request; BegunRequest is the last one for which a backup was started.
	LastRequest, BegunRequest string

	// Running is the backup that is being made, or retried after a failure; nil if there is none.
	Running *Started
	// Working means that an attempt at Running has begun and is not known to have ended.
	Working bool
	// DestinationChanged means that Running was started at an earlier destination.
	DestinationChanged bool
	// Failures counts the failed attempts since the last success. FailedAt is the last of them.
	Failures int
	FailedAt time.Time
	Problem  Problem
	// Kept are the backups at the destination, in the order of completion. Expiring are about to be
	// deleted. Incomplete are failed attempts that may have files at the destination.
	Kept       []KeptBackup
	Expiring   []Backup
	Incomplete []Attempt
	// RemovalProblem is why the last deletion failed; RemovalFailures counts the failures in
	// succession.
	RemovalProblem  Problem
	RemovalFailedAt time.Time
	RemovalFailures int
}

// KeptBackup is a backup at the destination. It has only the number of Clusters, because there may
// be thousands of backups of hundreds of Clusters each.
type KeptBackup struct {
	Backup
	Clusters int
}

func newKept(b Backup) KeptBackup {
	k := KeptBackup{Backup: b, Clusters: len(b.Clusters)}
	k.Backup.Clusters = nil
	return k
}

// Attempt is a failed attempt at the backup for Due or Request.
type Attempt struct {
	ID, Path string
	Due      time.Time
	Request  string
	// Superseded means that a backup has succeeded since.
	Superseded bool
}

// ClaimedBy returns the incarnation that drives the schedule.
func (s *State) ClaimedBy() string { return s.Holder }

// IsConfigured reports whether the schedule was ever configured.
func (s *State) IsConfigured() bool { return s.Spec.Schedule != "" }

// Finished reports whether the resource was deleted.
func (s *State) Finished() bool { return !s.EndedAt.IsZero() }

// Apply applies an event.
func (s *State) Apply(event Event, at time.Time) {
	switch e := event.(type) {
	case Configured:
		s.configure(e.Spec, at)
	case Requested:
		s.LastRequest = e.Value
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
		s.applyRemoved(e)
	case RemovalFailed:
		if s.hasRemovals() { // another destination may have been set meanwhile
			s.RemovalProblem, s.RemovalFailedAt = e.Problem, at
			s.RemovalFailures++
		}
	case Ended:
		s.EndedAt, s.Running, s.Working, s.Problem, s.RemovalProblem = at, nil, false, Problem{}, Problem{}
	}
}

// configure stops tracking the backups at an earlier destination.
func (s *State) configure(spec Spec, at time.Time) {
	if spec.Schedule != s.Spec.Schedule || spec.TimeZone != s.Spec.TimeZone || spec.Suspend != s.Spec.Suspend {
		s.Since = at
	}
	if s.IsConfigured() && !spec.Destination.SameLocation(s.Spec.Destination) {
		s.Kept, s.Expiring, s.Incomplete, s.DestinationChanged = nil, nil, nil, s.Working
	}
	// The change may have corrected the cause of a failure, so a retry is due at once.
	s.Spec, s.Failures, s.FailedAt, s.RemovalFailures, s.RemovalFailedAt, s.RemovalProblem = spec, 0, time.Time{}, 0, time.Time{}, Problem{}
}

func (s *State) start(e Started) {
	s.Running, s.Working, s.DestinationChanged = &e, true, false
	if !e.Due.IsZero() {
		s.LastDue = e.Due
	}
	if e.Request != "" {
		s.BegunRequest = e.Request
	}
}

// complete adds a backup in the order of the log, not of the clock.
func (s *State) complete(b Backup, at time.Time) {
	if i := slices.IndexFunc(s.Incomplete, func(a Attempt) bool { return a.ID == b.ID }); i >= 0 {
		s.addFound(b, s.Incomplete[i])
		return
	}
	if !s.DestinationChanged {
		s.Kept = append(s.Kept, newKept(b))
		s.LastSuccess = at
		s.supersede()
	}
	s.clearRunning()
}

// addFound adds a complete backup whose attempt counted as failed. A backup that has failed since
// is still retried if it is for another time of the schedule.
func (s *State) addFound(b Backup, a Attempt) {
	s.Incomplete = slices.DeleteFunc(s.Incomplete, func(other Attempt) bool { return other.ID == b.ID })
	s.Kept = append(s.Kept, newKept(b))
	s.LastSuccess = b.TakenAt
	s.supersede()
	if r := s.Running; r != nil && !s.Working && r.Due.Equal(a.Due) && r.Request == a.Request {
		s.clearRunning()
	}
}

func (s *State) supersede() {
	for i := range s.Incomplete {
		s.Incomplete[i].Superseded = true
	}
}

func (s *State) clearRunning() {
	s.Running, s.Working, s.DestinationChanged, s.Failures, s.FailedAt, s.Problem = nil, false, false, 0, time.Time{}, Problem{}
}

func (s *State) fail(e Failed, at time.Time) {
	if s.Running == nil || s.Running.ID != e.ID {
		return
	}
	if !s.DestinationChanged && !e.Unwritten {
		s.Incomplete = append(s.Incomplete, Attempt{ID: e.ID, Path: s.Running.Path, Due: s.Running.Due, Request: s.Running.Request})
	}
	s.Working, s.DestinationChanged = false, false
	s.Failures++
	s.FailedAt, s.Problem = at, e.Problem
}

// expire moves backups to Expiring: from now on their files may be incomplete.
func (s *State) expire(ids []string) {
	s.Kept = slices.DeleteFunc(s.Kept, func(b KeptBackup) bool {
		if !slices.Contains(ids, b.ID) {
			return false
		}
		s.Expiring = append(s.Expiring, b.Backup)
		return true
	})
}

func (s *State) hasRemovals() bool { return len(s.Expiring)+len(s.Incomplete) > 0 }

func (s *State) applyRemoved(e Removed) {
	s.RemovalProblem, s.RemovalFailedAt, s.RemovalFailures = Problem{}, time.Time{}, 0
	gone := func(b Backup) bool {
		return slices.ContainsFunc(e.Backups, func(gone Backup) bool { return gone.ID == b.ID }) || slices.Contains(e.Foreign, b.Path)
	}
	s.Kept, s.Expiring = slices.DeleteFunc(s.Kept, func(b KeptBackup) bool { return gone(b.Backup) }), slices.DeleteFunc(s.Expiring, gone)
	s.Incomplete = slices.DeleteFunc(s.Incomplete, func(a Attempt) bool {
		return slices.Contains(e.Incomplete, a.Path) || slices.Contains(e.Foreign, a.Path)
	})
}
