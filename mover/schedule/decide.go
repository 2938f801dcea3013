package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/robfig/cron/v3"
)

// Step is what must be done about a schedule.
type Step struct {
	// At is when; zero when only a change of the schedule makes something due.
	At time.Time
	Do Action
	// Due and Skipped, or Request, are those of a backup that begins: see Started.
	Due     time.Time
	Skipped int
	Request string
}

// Action is a kind of step.
type Action int

// The kinds of steps.
const (
	// Rest: nothing until At, when it is decided again.
	Rest Action = iota
	// Resume looks whether the backup is complete whose process ended.
	Resume
	// Begin begins a backup, the first attempt or another one.
	Begin
	// Remove removes what is no longer kept.
	Remove
)

// What failed is tried again after retryFirst, twice as long after each further failure, up to retryLast.
const (
	retryFirst = 5 * time.Second
	retryLast  = 10 * time.Minute
)

func retry(failures int) time.Duration {
	if failures < 1 {
		return 0
	}
	return min(retryFirst<<min(failures-1, 20), retryLast)
}

// again is when something is tried again that failed last at a time, zero for never. A failure that is yet to come says that the clock
// was ahead then: it is tried again at once.
func again(failed time.Time, failures int, now time.Time) time.Time {
	if failed.IsZero() || failed.After(now) {
		return now
	}
	return failed.Add(retry(failures))
}

// clockDrift is by how much a clock may be set back without anything being made twice.
const clockDrift = 10 * time.Minute

// Check says what is wrong with the schedule of a spec, by the field.
func Check(schedule, zone string) (field string, err error) {
	// Local is the zone of the machine that the daemon happens to run on.
	if _, err := time.LoadLocation(zone); err != nil || strings.EqualFold(zone, "Local") {
		return "spec.timeZone", fmt.Errorf("%q is not a time zone that is known here: write it as Europe/Berlin or Etc/UTC", zone)
	}
	times, err := parse(schedule, zone)
	if err != nil {
		return "spec.schedule", err
	}
	if times.Next(time.Unix(0, 0)).IsZero() {
		return "spec.schedule", fmt.Errorf("%q names no time that ever comes", schedule)
	}
	return "", nil
}

// times are the times of a schedule.
type times struct {
	cron.Schedule
	zone *time.Location
}

// Next is the first time after t.
func (s times) Next(t time.Time) time.Time {
	next := s.Schedule.Next(t.In(s.zone))
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

func parse(schedule, zone string) (times, error) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		return times{}, err
	}
	if strings.Contains(schedule, "=") || strings.HasPrefix(schedule, "@every") {
		return times{}, errors.New("it must be five fields of cron, or @hourly, @daily, @weekly, @monthly or @yearly")
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return times{}, fmt.Errorf("%q is not a schedule of cron: %w", schedule, err)
	}
	return times{parsed, location}, nil
}

// NextStep says what must be done now or later. It is the same step until something has happened.
func NextStep(s *State, now time.Time) Step {
	if !s.Known() || s.Finished() {
		return Step{}
	}
	if s.Working {
		return Step{At: now, Do: Resume}
	}
	begin := nextBegin(s, now)
	if s.removing() || len(Expired(s)) > 0 {
		at := again(s.RemovalAt, s.Removals, now)
		if begin.At.IsZero() || at.Before(begin.At) {
			return later(Step{At: at, Do: Remove}, now)
		}
	}
	return later(begin, now)
}

// later rests until a step is due.
func later(step Step, now time.Time) Step {
	if step.At.After(now) {
		return Step{At: step.At}
	}
	return step
}

// nextBegin is the backup that begins next.
func nextBegin(s *State, now time.Time) Step {
	if s.Asked != s.Begun {
		return Step{At: now, Do: Begin, Request: s.Asked}
	}
	next := NextDue(s, now)
	if tried(s) {
		retried := Step{At: again(s.FailedAt, s.Failures, now), Do: Begin, Due: s.Running.Due, Request: s.Running.Request}
		if next.At.IsZero() || next.At.After(now) && retried.At.Before(next.At) {
			return retried
		}
	}
	return next
}

// tried says that a backup which failed is tried again.
func tried(s *State) bool { return s.Running != nil && (!s.Spec.Suspend || s.Running.Request != "") }

// NextDue is the next time of the schedule, or the last that was missed and can be made up for.
func NextDue(s *State, now time.Time) Step {
	if s.Spec.Suspend || s.Finished() || !s.Known() {
		return Step{}
	}
	times, err := parse(s.Spec.Schedule, s.Spec.TimeZone)
	if err != nil {
		return Step{} // it was checked before it was recorded; another version of the database of time zones does not have it
	}
	after := lastDue(s, now)
	if earliest := now.Add(-time.Duration(s.Spec.StartingDeadline)); earliest.After(after) {
		after = earliest.Add(-1)
	}
	due, missed := times.Next(after), 0
	if due.IsZero() {
		return Step{}
	}
	for next := times.Next(due); !next.IsZero() && !next.After(now); next = times.Next(next) {
		due, missed = next, missed+1
	}
	return Step{At: due, Do: Begin, Due: due, Skipped: missed}
}

// lastDue is after when something is due. What was set, or begun, at a time that is yet to come was at a clock that was ahead: a
// schedule must not rest until then.
func lastDue(s *State, now time.Time) time.Time {
	last := s.Since
	if s.LastDue.After(last) {
		last = s.LastDue
	}
	if last.Sub(now) > clockDrift {
		return now
	}
	return last
}

// Expired are the backups that retention no longer keeps as of the last success. Without a later success nothing expires, and the
// newest backup never does, nor by keepFor the one before it. While backups fail none expires, whatever the retention becomes, and none of a schedule that has ended.
func Expired(s *State) (expired []Backup) {
	if s.Spec.KeepLast == 0 && s.Spec.KeepFor == 0 || s.Running != nil || s.Finished() {
		return nil
	}
	keepFor := time.Duration(s.Spec.KeepFor)
	var age time.Duration // by the time between one backup and the next
	for newest := range s.Kept {
		i := len(s.Kept) - 1 - newest
		b := &s.Kept[i]
		if newest > 0 {
			// A clock that jumps makes no backup older than by half of keepFor, whatever it says afterwards.
			age += min(max(s.Kept[i+1].TakenAt.Sub(b.TakenAt), 0), keepFor/2)
		}
		young := keepFor > 0 && (age < keepFor || s.LastSuccess.Sub(b.TakenAt) < keepFor)
		if newest > 0 && newest >= s.Spec.KeepLast && !young {
			expired = append(expired, b.Backup)
		}
	}
	slices.Reverse(expired)
	return expired
}

// Place is the name of the folder of a backup at its destination: it begins with that of the schedule, and is in the order of time.
func Place(s *Spec, id string, now time.Time) string {
	const unique = 8
	parts := []string{s.Destination.Prefix, s.Name, now.UTC().Format("20060102T150405Z") + "-" + id[:min(len(id), unique)]}
	if s.Destination.Bucket == "" {
		parts[0] = s.Destination.Folder
		parts = slices.Insert(parts, 0, s.Namespace)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "/")
}

// Recipients are those of the public keys of a spec, who can read its backups. An error says what is wrong with which field, and
// nothing of what it has: that may be a private key.
func Recipients(keys []string) (recipients []age.Recipient, field string, err error) {
	for i, key := range keys {
		r, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, fmt.Sprintf("spec.encryption.recipients[%d]", i), errors.New("it is no public key of age")
		}
		recipients = append(recipients, r...)
	}
	return recipients, "", nil
}
