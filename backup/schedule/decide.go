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

// Step is an action for a schedule, and when it is due.
type Step struct {
	// At is zero if only a change of the schedule makes a step due.
	At     time.Time
	Action Action
	// Due and Skipped, or Request, describe the backup to begin; see Started.
	Due     time.Time
	Skipped int
	Request string
}

// Action is a kind of step.
type Action int

// The actions.
const (
	// Idle means that nothing is due before At. Then call NextStep again.
	Idle Action = iota
	// Resume checks whether a backup is complete whose process ended.
	Resume
	// Begin starts the first attempt at a backup, or a retry.
	Begin
	// Remove deletes backups that are no longer kept.
	Remove
)

// A failure is retried after retryFirst. Each further one doubles the delay, up to retryMax.
const (
	retryFirst = 5 * time.Second
	retryMax   = 10 * time.Minute
)

// retryAt returns when work is retried; failed is its last failure, or zero. A failure in the
// future means that the clock was ahead, so the retry is due at once.
func retryAt(failed time.Time, failures int, now time.Time) time.Time {
	if failed.IsZero() || failed.After(now) {
		return now
	}
	return failed.Add(min(retryFirst<<min(max(failures, 1)-1, 20), retryMax))
}

// clockDrift is how far the clock may be set back without a backup being made twice.
const clockDrift = 10 * time.Minute

// Validate returns the invalid field if the schedule or the time zone is invalid.
func Validate(schedule, zone string) (field string, err error) {
	// Local depends on the daemon's machine.
	if _, err := time.LoadLocation(zone); err != nil || strings.EqualFold(zone, "Local") {
		return "spec.timeZone", fmt.Errorf("%q is not a known time zone: write it as Europe/Berlin or Etc/UTC", zone)
	}
	times, err := parse(schedule, zone)
	if err != nil {
		return "spec.schedule", err
	}
	if times.Next(time.Unix(0, 0)).IsZero() {
		return "spec.schedule", fmt.Errorf("%q never matches a time", schedule)
	}
	return "", nil
}

// parse returns a schedule in a time zone. Pass it times in UTC, because it returns times in the
// zone of its argument.
func parse(schedule, zone string) (cron.Schedule, error) {
	if strings.Contains(schedule, "=") || strings.Contains(schedule, "@every") {
		return nil, errors.New("it must have the five fields of cron, or be @hourly, @daily, @weekly, @monthly or @yearly")
	}
	parsed, err := cron.ParseStandard("CRON_TZ=" + zone + " " + schedule)
	if err != nil {
		return nil, fmt.Errorf("%q is not a cron schedule: %w", schedule, err)
	}
	return parsed, nil
}

// NextStep returns the step that is due now or later, the same one until an event is applied.
func NextStep(s *State, now time.Time) Step {
	if !s.IsConfigured() || s.Finished() {
		return Step{}
	}
	if s.Working {
		return Step{At: now, Action: Resume}
	}
	step := nextBegin(s, now)
	if s.hasRemovals() || len(Expired(s)) > 0 {
		if at := retryAt(s.RemovalFailedAt, s.RemovalFailures, now); step.At.IsZero() || at.Before(step.At) {
			step = Step{At: at, Action: Remove}
		}
	}
	if step.At.After(now) {
		return Step{At: step.At} // Idle until then
	}
	return step
}

func nextBegin(s *State, now time.Time) Step {
	if s.LastRequest != s.BegunRequest {
		return Step{At: now, Action: Begin, Request: s.LastRequest}
	}
	next := NextDue(s, now)
	if isRetried(s) {
		retried := Step{At: retryAt(s.FailedAt, s.Failures, now), Action: Begin, Due: s.Running.Due, Request: s.Running.Request}
		if next.At.IsZero() || next.At.After(now) && retried.At.Before(next.At) {
			return retried
		}
	}
	return next
}

func isRetried(s *State) bool {
	return s.Running != nil && (!s.Spec.Suspend || s.Running.Request != "")
}

// NextDue returns the schedule's next time, or the last missed one within the starting deadline.
func NextDue(s *State, now time.Time) Step {
	if s.Spec.Suspend || s.Finished() || !s.IsConfigured() {
		return Step{}
	}
	times, err := parse(s.Spec.Schedule, s.Spec.TimeZone)
	if err != nil {
		return Step{} // valid when recorded, but this time zone database lacks the zone
	}
	after := lastDue(s, now)
	if earliest := now.Add(-time.Duration(s.Spec.StartingDeadline)); earliest.After(after) {
		after = earliest.Add(-1)
	}
	due, missed := times.Next(after.UTC()), 0
	if due.IsZero() {
		return Step{}
	}
	for next := times.Next(due); !next.IsZero() && !next.After(now); next = times.Next(next) {
		due, missed = next, missed+1
	}
	return Step{At: due, Action: Begin, Due: due, Skipped: missed}
}

// lastDue returns the time after which a backup may be due. It returns now if the schedule was set,
// or a backup started, in the future: the clock was ahead, and the schedule must not wait until
// then.
func lastDue(s *State, now time.Time) time.Time {
	last := slices.MaxFunc([]time.Time{s.Since, s.LastDue}, time.Time.Compare)
	if last.Sub(now) > clockDrift {
		return now
	}
	return last
}

// Expired returns the backups that retention no longer keeps as of the last success; time alone
// expires none. The newest backup never expires; with keepFor, the second newest does not either.
// None expires while backups fail, even if the retention changes, or after the schedule has ended.
func Expired(s *State) (expired []Backup) {
	if s.Spec.KeepLast == 0 && s.Spec.KeepFor == 0 || s.Running != nil || s.Finished() {
		return nil
	}
	keepFor := time.Duration(s.Spec.KeepFor)
	var age time.Duration // sum of the intervals between backups
	for newest := range s.Kept {
		i := len(s.Kept) - 1 - newest
		b := &s.Kept[i]
		if newest > 0 {
			// An interval counts for at most half of keepFor, in case the clock has jumped.
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

// BackupPath returns a backup's folder at its destination. The paths of a schedule sort by time.
func BackupPath(s *Spec, id string, now time.Time) string {
	const unique = 8
	parts := []string{s.Destination.Prefix, s.Name, now.UTC().Format("20060102T150405Z") + "-" + id[:min(len(id), unique)]}
	if s.Destination.Bucket == "" {
		parts[0] = s.Destination.Folder
		parts = slices.Insert(parts, 0, s.Namespace)
	}
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "/")
}

// ParseRecipients parses the public keys of a spec, whose owners can read its backups. An error
// names the field but does not quote it, because it may be a private key.
func ParseRecipients(keys []string) (recipients []age.Recipient, field string, err error) {
	for i, key := range keys {
		r, err := age.ParseRecipients(strings.NewReader(key))
		if err != nil {
			return nil, fmt.Sprintf("spec.encryption.recipients[%d]", i), errors.New("it is not a public key of age")
		}
		recipients = append(recipients, r...)
	}
	return recipients, "", nil
}
