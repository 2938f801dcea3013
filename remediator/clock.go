package remediator

import (
	"maps"
	"slices"
	"time"
)

// Skew is the accepted difference between clocks. A time further in the future than Skew is assumed
// to have been recorded before a clock was set back.
const Skew = time.Minute

// isFuture reports whether a time is further in the future than Skew.
func isFuture(at, now time.Time) bool { return at.After(now.Add(Skew)) }

// checkClock returns ClockSetBack if the log has times in the future. Without that event, each wait
// would take longer by the difference.
func checkClock(s *State, _ *Facts, now time.Time) []Event {
	waits := HasPending(s) || s.Maintenance.Active.Node != "" || isFuture(s.Maintenance.EndedAt, now)
	return eventIf(waits && isFuture(s.Last, now), ClockSetBack{By: s.Last.Sub(now).Round(time.Second).String()})
}

// clampTimes replaces times in the future by now. The wait from such a time starts again, and a
// limit counts such a start as if it happened now, so nothing happens sooner than it should.
func (s *State) clampTimes(now time.Time) {
	s.Last = now
	s.eachTime(func(at *time.Time) {
		if at.After(now) {
			*at = now
		}
	})
}

// eachTime calls visit with a pointer to each time in the state at which something happened. It
// omits deadlines and times that users write. It copies maps and lists that the state may share
// with events, so that visit may change the times.
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
		visit(&u.Mark.Since)
		u.Mark.FailingSince = all(u.Mark.FailingSince)
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
	s.Mass.Ended, s.Maintenance.Done = all(s.Mass.Ended), all(s.Maintenance.Done)
	for _, at := range []*time.Time{&s.MassFailureEnded, &s.FailingSince, &s.Etcd.At, &s.Maintenance.Active.At, &s.Maintenance.EndedAt, &s.Maintenance.DisarmedAt} {
		visit(at)
	}
}
