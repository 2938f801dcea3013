package remediator

import (
	"maps"
	"slices"
	"time"
)

// Skew is the accepted difference between clocks. A time that is further in the future was recorded before a clock was set back.
const Skew = time.Minute

// ahead reports whether a time is further in the future than Skew.
func ahead(at, now time.Time) bool { return at.After(now.Add(Skew)) }

// clock records that the clock was set back, if the log has times in the future. Otherwise each wait would take longer by the difference.
func clock(s *State, _ *Facts, now time.Time) []Event {
	if !ahead(s.Last, now) || !Due(s) && s.Care.Active == nil && !ahead(s.Care.EndedAt, now) {
		return nil
	}
	return []Event{ClockSetBack{By: s.Last.Sub(now).Round(time.Second).String()}}
}

// setBack replaces times in the future by now. So a wait starts again, a limit counts a start as if it happened now, and nothing happens sooner.
func (s *State) setBack(now time.Time) {
	s.Last = now
	s.eachTime(func(at *time.Time) {
		if at.After(now) {
			*at = now
		}
	})
}

// eachTime calls visit with each time at which something happened, by the clock of the process that recorded it. Times that users write, and
// deadlines, are not included. Values that are shared with events are copied.
func (s *State) eachTime(visit func(*time.Time)) {
	all := func(times map[string]time.Time) map[string]time.Time {
		times = maps.Clone(times)
		for key, at := range times {
			visit(&at)
			times[key] = at
		}
		return times
	}
	for _, u := range s.Unhealthy {
		for _, at := range []*time.Time{&u.MarkedAt, &u.UnhealthyAt, &u.DecidedAt, &u.EscalationSince, &u.LastAttempt, &u.ClearedAt} {
			visit(at)
		}
		if u.Mark != nil {
			mark := *u.Mark
			visit(&mark.Since)
			mark.Seen = all(mark.Seen)
			u.Mark = &mark
		}
	}
	for _, a := range s.InProgress() {
		for _, at := range []*time.Time{&a.Since, &a.StartedAt, &a.FrozenAt} {
			visit(at)
		}
	}
	for i := range s.History {
		e := &s.History[i]
		for _, at := range []*time.Time{&e.MarkedAt, &e.StartedAt, &e.StepSince, &e.EndedAt} {
			visit(at)
		}
	}
	s.Starts = slices.Clone(s.Starts)
	for i := range s.Starts {
		visit(&s.Starts[i])
	}
	for uid, link := range s.Chain {
		visit(&link.At)
		s.Chain[uid] = link
	}
	if s.Etcd != nil {
		report := *s.Etcd
		visit(&report.At)
		s.Etcd = &report
	}
	if active := s.Care.Active; active != nil {
		copied := *active
		visit(&copied.At)
		s.Care.Active = &copied
	}
	s.Mass.Passed, s.Care.Done = all(s.Mass.Passed), all(s.Care.Done)
	for _, at := range []*time.Time{&s.MassFailureEnded, &s.FailingSince, &s.Care.EndedAt, &s.Care.DisarmedAt} {
		visit(at)
	}
}
