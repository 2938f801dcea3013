package schedule

import "time"

// Missed is the first time of the schedule since the last backup at which none was begun within the starting deadline; zero for none.
func Missed(s *State, now time.Time) time.Time {
	if s.Spec.Suspend || s.Finished() || !s.Known() || s.Running != nil {
		return time.Time{}
	}
	times, err := parse(s.Spec.Schedule, s.Spec.TimeZone)
	if err != nil {
		return time.Time{}
	}
	last := lastDue(s, now)
	if s.LastSuccess.After(last) { // one that somebody asked for makes up for it
		last = s.LastSuccess
	}
	if due := times.Next(last); !due.IsZero() && due.Add(time.Duration(s.Spec.StartingDeadline)).Before(now) {
		return due
	}
	return time.Time{}
}
