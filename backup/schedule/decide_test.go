package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

// hourly returns a schedule at a quarter past each hour, set at 10:00.
func hourly() *State {
	s := new(State)
	s.Apply(Configured{Spec: Spec{
		Namespace: "fleet", Name: "nightly", Generation: 1, Schedule: "15 * * * *", TimeZone: "Etc/UTC", StartingDeadline: Duration(3 * time.Hour), All: true,
		Destination: Destination{Endpoint: "https://s3.example.com", Bucket: "backups", Prefix: "prod"},
	}}, at("2026-11-25T10:00:00"))
	return s
}

func (s *State) backup(id, when string) {
	s.Apply(Started{ID: id, Path: "prod/nightly/" + id, Due: at(when)}, at(when))
	s.Apply(Completed{Backup{ID: id, Path: "prod/nightly/" + id, TakenAt: at(when), Clusters: []string{"prod"}, Objects: 41}}, at(when))
}

// TestDue checks that each time of the schedule starts one backup, that only the last of several missed times is made
// up for, and that no backup starts after its deadline.
func TestDue(t *testing.T) {
	for _, c := range []struct {
		name, now string
		change    func(*State)
		want      Step
	}{
		{"before its time", "2026-11-25T10:05:00", nil, Step{At: at("2026-11-25T10:15:00")}},
		{"at its time", "2026-11-25T10:15:00", nil, Step{At: at("2026-11-25T10:15:00"), Action: Begin, Due: at("2026-11-25T10:15:00")}},
		{"after it was made", "2026-11-25T10:16:00", func(s *State) { s.backup("a", "2026-11-25T10:15:00") }, Step{At: at("2026-11-25T11:15:00")}},
		{"missed thrice", "2026-11-25T13:00:00", nil, Step{At: at("2026-11-25T12:15:00"), Action: Begin, Due: at("2026-11-25T12:15:00"), Skipped: 2}},
		{"missed for a month", "2026-12-25T13:00:00", nil, Step{At: at("2026-12-25T12:15:00"), Action: Begin, Due: at("2026-12-25T12:15:00"), Skipped: 2}},
		{"missed for longer than it may", "2026-11-25T11:00:00", func(s *State) { s.Spec.StartingDeadline = Duration(10 * time.Minute) }, Step{At: at("2026-11-25T11:15:00")}},
		{"at the end of its deadline", "2026-11-25T11:25:00", func(s *State) { s.Spec.StartingDeadline = Duration(10 * time.Minute) }, Step{At: at("2026-11-25T11:15:00"), Action: Begin, Due: at("2026-11-25T11:15:00")}},
		{"at the end of the deadline of one that was made", "2026-11-25T10:25:00", func(s *State) {
			s.Spec.StartingDeadline = Duration(10 * time.Minute)
			s.backup("a", "2026-11-25T10:15:00")
		}, Step{At: at("2026-11-25T11:15:00")}},
		{"missed once, at the next time", "2026-11-25T11:15:00", nil, Step{At: at("2026-11-25T11:15:00"), Action: Begin, Due: at("2026-11-25T11:15:00"), Skipped: 1}},
		{"made, and the clock was set back by as much as it may", "2026-11-25T10:05:00", func(s *State) { s.backup("a", "2026-11-25T10:15:00") }, Step{At: at("2026-11-25T11:15:00")}},
		{"requested, and something must be removed", "2026-11-25T11:20:00", func(s *State) {
			s.Spec.KeepLast = 1
			s.backup("a", "2026-11-25T10:15:00")
			s.backup("b", "2026-11-25T11:15:00")
			s.Apply(Requested{"x"}, s.Since)
		}, Step{At: at("2026-11-25T11:20:00"), Action: Begin, Request: "x"}},
		{"suspended", "2026-11-25T13:00:00", func(s *State) { s.Spec.Suspend = true }, Step{}},
		{"requested", "2026-11-25T10:05:00", func(s *State) { s.Apply(Requested{"x"}, s.Since) }, Step{At: at("2026-11-25T10:05:00"), Action: Begin, Request: "x"}},
		{"requested while suspended", "2026-11-25T10:05:00", func(s *State) { s.Spec.Suspend = true; s.Apply(Requested{"x"}, s.Since) }, Step{At: at("2026-11-25T10:05:00"), Action: Begin, Request: "x"}},
		{"in another time zone", "2026-11-25T10:05:00", func(s *State) { s.Spec.Schedule, s.Spec.TimeZone = "0 18 * * *", "Asia/Tokyo" }, Step{At: at("2026-11-26T09:00:00")}},
		{"its process ended", "2026-11-25T10:20:00", func(s *State) { s.Apply(Started{ID: "a", Due: at("2026-11-25T10:15:00")}, s.Since) }, Step{At: at("2026-11-25T10:20:00"), Action: Resume}},
		{"gone", "2026-11-25T10:20:00", func(s *State) { s.Apply(Ended{}, s.Since) }, Step{}},
	} {
		s := hourly()
		if c.change != nil {
			c.change(s)
		}
		if diff := cmp.Diff(c.want, NextStep(s, at(c.now))); diff != "" {
			t.Errorf("%s: NextStep (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestRetries checks that failed backups are retried with growing intervals, that their files are removed first, and
// that the next time of the schedule replaces a retry.
func TestRetries(t *testing.T) {
	s := hourly()
	now := at("2026-11-25T10:15:00")
	var waits []time.Duration
	for i := range 9 {
		step := NextStep(s, now)
		if step.Action != Begin || !step.Due.Equal(at("2026-11-25T10:15:00")) {
			t.Fatalf("step before attempt %d = %+v", i, step)
		}
		id := strings.Repeat("a", i+1)
		s.Apply(Started{ID: id, Path: id, Due: step.Due}, now)
		s.Apply(Failed{ID: id, Problem: Problem{Message: "it is away"}}, now)
		if step := NextStep(s, now); step.Action != Remove {
			t.Fatalf("step after attempt %d = %+v, want Remove", i, step)
		}
		s.Apply(Removed{Incomplete: []string{id}}, now)
		next := NextStep(s, now)
		waits = append(waits, next.At.Sub(now))
		now = next.At
	}
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 320 * time.Second, 10 * time.Minute, 10 * time.Minute}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Error(diff)
	}
	if step := NextStep(s, at("2026-11-25T11:15:00")); !step.Due.Equal(at("2026-11-25T11:15:00")) {
		t.Errorf("step at the next time of the schedule = %+v", step)
	}
	s.Apply(Configured{Spec: s.Spec}, now)
	if step := NextStep(s, now); step.Action != Begin {
		t.Errorf("step after a change of the spec = %+v, want Begin", step)
	}
}

// TestRetention checks that backups are removed that no rule keeps, but only after a success, and never the newest one.
func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name string
		last int
		age  time.Duration
		want string
	}{
		{"without rules", 0, 0, ""},
		{"the last two", 2, 0, "a b"},
		{"for 150 minutes", 0, 150 * time.Minute, "a"},
		{"both", 1, 90 * time.Minute, "a b"},
		{"for a minute", 0, time.Minute, "a b"},
		{"more than there are", 9, 0, ""},
	} {
		s := hourly()
		for i, when := range []string{"10:15", "11:15", "12:15", "13:15"} {
			s.Apply(Completed{Backup{ID: string(rune('a' + i)), TakenAt: at("2026-11-25T" + when + ":00")}}, at("2026-11-25T13:16:00"))
		}
		s.Spec.KeepLast, s.Spec.KeepFor = c.last, Duration(c.age)
		var got []string
		for _, b := range Expired(s) {
			got = append(got, b.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: expired %v, want %s", c.name, got, c.want)
		}
	}
	s := hourly()
	s.Spec.KeepFor = Duration(time.Hour)
	s.backup("a", "2026-11-25T10:15:00")
	s.backup("b", "2026-11-25T10:30:00")
	if expired := Expired(s); len(expired) != 0 {
		t.Errorf("Expired after a month without a success = %v, want none", expired)
	}
	s.failed("c", "2026-11-25T11:15:00")
	s.Spec.KeepFor, s.Spec.KeepLast = 0, 1
	if expired := Expired(s); len(expired) != 0 {
		t.Errorf("Expired after the retention changed while backups fail = %v, want none", expired)
	}
}

func (s *State) failed(id, when string) {
	s.Apply(Started{ID: id, Path: "prod/nightly/" + id, Due: at(when)}, at(when))
	s.Apply(Failed{ID: id, Problem: Problem{Message: "it is away"}}, at(when))
}

// TestExpiring checks that a backup is no longer shown once its removal has started, even if the retention changes:
// some of its files may be gone.
func TestExpiring(t *testing.T) {
	s := hourly()
	s.backup("a", "2026-11-25T10:15:00")
	s.backup("b", "2026-11-25T11:15:00")
	s.Apply(RemovalStarted{Backups: []string{"a"}}, at("2026-11-25T11:16:00"))
	s.Apply(RemovalFailed{Problem{Message: "it is away"}}, at("2026-11-25T11:16:00"))
	now := at("2026-11-25T11:17:00")
	if got := Status(s, now); got.Kept != 1 || len(got.Backups) != 1 || got.Backups[0].ID != "b" || !strings.Contains(got.Message, "it is away") {
		t.Errorf("Status = %+v", got)
	}
	if step := NextStep(s, now); step.Action != Remove {
		t.Errorf("step = %+v, want Remove", step)
	}
	s.Apply(Removed{Backups: []Backup{{ID: "a"}}}, now)
	if step := NextStep(s, now); step.Action != Idle || len(s.Expiring) > 0 || s.RemovalProblem != (Problem{}) {
		t.Errorf("step = %+v, state %+v", step, s)
	}
	s.Apply(RemovalFailed{Problem{Message: "it is away"}}, now)
	if s.RemovalProblem != (Problem{}) {
		t.Errorf("state has a removal problem with nothing to remove: %+v", s.RemovalProblem)
	}
}

// TestCompleteAfterAll checks that a backup that was recorded as failed but is complete is kept. It ends the attempts
// for its own scheduled time only.
func TestCompleteAfterAll(t *testing.T) {
	s := hourly()
	s.failed("a", "2026-11-25T10:15:00")
	s.failed("b", "2026-11-25T11:15:00")
	found := Backup{ID: "a", Path: "prod/nightly/a", TakenAt: at("2026-11-25T10:15:10")}
	s.Apply(Completed{found}, at("2026-11-25T11:16:00"))
	if len(s.Kept) != 1 || len(s.Incomplete) != 1 || !s.Incomplete[0].Superseded || s.Running == nil || !s.LastSuccess.Equal(found.TakenAt) {
		t.Errorf("after the completion of the older backup: %+v", s)
	}
	found.ID = "b"
	if s.Apply(Completed{found}, at("2026-11-25T11:17:00")); len(s.Kept) != 2 || s.Running != nil || s.Failures > 0 {
		t.Errorf("after the completion of the newer backup: %+v", s)
	}
}

// TestBackupsByAClockFarAhead checks that a clock that is far ahead does not expire earlier good backups, even after it
// is corrected. If the clock stays ahead, backups expire normally.
func TestBackupsByAClockFarAhead(t *testing.T) {
	type next struct{ at, expired string }
	for name, all := range map[string][]next{
		"one":         {{"2031-01-01T00:15:00", ""}, {"2026-11-25T13:15:00", ""}, {"2026-11-25T14:15:00", "a"}, {"2026-11-25T15:15:00", "a b"}},
		"two":         {{"2031-01-01T00:15:00", ""}, {"2031-01-01T01:15:00", "a"}, {"2026-11-25T14:15:00", "a"}, {"2026-11-25T15:15:00", "a b"}},
		"all":         {{"2031-01-01T00:15:00", ""}, {"2031-01-01T01:15:00", "a"}, {"2031-01-01T02:15:00", "a b"}, {"2031-01-01T03:15:00", "a b c"}},
		"it was back": {{"1970-01-01T00:15:00", ""}, {"1970-01-01T01:15:00", ""}, {"2026-11-25T14:15:00", "a"}, {"2026-11-25T15:15:00", "a b c"}},
	} {
		s := hourly()
		s.Spec.KeepFor = Duration(3 * time.Hour)
		s.backup("a", "2026-11-25T10:15:00")
		s.backup("b", "2026-11-25T11:15:00")
		for i, next := range all {
			s.backup(string(rune('c'+i)), next.at)
			var got []string
			for _, b := range Expired(s) {
				got = append(got, b.ID)
			}
			if strings.Join(got, " ") != next.expired {
				t.Errorf("%s: after %s, expired %v, want %s", name, next.at, got, next.expired)
			}
		}
	}
}

// TestClockThatWasWrong checks that a clock that was ahead for a while delays neither the schedule nor retries, and
// that a backup made after the correction is the newest.
func TestClockThatWasWrong(t *testing.T) {
	s := hourly()
	s.Spec.KeepLast = 1
	s.backup("ahead", "2031-01-01T00:15:00")
	now := at("2026-11-25T11:15:00")
	if step := NextDue(s, now); step.At.After(now.Add(time.Hour)) {
		t.Errorf("next step is at %s, want within an hour", step.At)
	}
	s.backup("after", "2026-11-25T11:15:00")
	if expired := Expired(s); len(expired) != 1 || expired[0].ID != "ahead" {
		t.Errorf("expired %v, want the backup from the future", expired)
	}
	if step := NextDue(s, now.Add(-time.Minute)); step.At.Before(at("2026-11-25T12:15:00")) {
		t.Errorf("step after the clock went back by a minute = %+v, want the next scheduled time", step)
	}
	s.Apply(Requested{"x"}, now)
	s.Apply(Started{ID: "a", Request: "x"}, now)
	s.Apply(Failed{ID: "a", Unwritten: true}, at("2031-01-01T00:15:00"))
	if step := NextStep(s, now); step.Action != Begin {
		t.Errorf("step after a requested backup failed = %+v, want Begin", step)
	}
}

// TestAnotherDestination checks that backups at an earlier destination are forgotten, and kept if only the credentials
// change.
func TestAnotherDestination(t *testing.T) {
	s := hourly()
	s.backup("a", "2026-11-25T10:15:00")
	spec := s.Spec
	spec.Destination.Secret = "another"
	if s.Apply(Configured{Spec: spec}, s.Since); len(s.Kept) != 1 {
		t.Error("other credentials made the state forget its backups")
	}
	spec.Destination.Bucket = "another"
	if s.Apply(Configured{Spec: spec}, s.Since); len(s.Kept) != 0 {
		t.Errorf("kept after a change of the destination: %v, want none", s.Kept)
	}
	for name, end := range map[string]Event{"complete": Completed{Backup{ID: "b", Path: "prod/nightly/b", TakenAt: s.Since}}, "failed": Failed{ID: "b"}} {
		s := hourly()
		s.Apply(Started{ID: "b", Path: "prod/nightly/b", Due: s.Since}, s.Since)
		s.Apply(Configured{Spec: spec}, s.Since)
		if s.Apply(end, s.Since); len(s.Kept)+len(s.Incomplete) > 0 || s.Working {
			t.Errorf("%s at the earlier destination: %+v", name, s)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ schedule, zone, field string }{
		{"0 3 * * *", "Europe/Berlin", ""},
		{"@daily", "Etc/UTC", ""},
		{"0 3 * * MON-FRI", "Etc/UTC", ""},
		{"0 25 * * *", "Etc/UTC", "spec.schedule"},
		{"0 0 30 2 *", "Etc/UTC", "spec.schedule"},
		{"@every 1s", "Etc/UTC", "spec.schedule"},
		{"TZ=UTC 0 3 * * *", "Etc/UTC", "spec.schedule"},
		{"0 3 * * *", "Europe/Atlantis", "spec.timeZone"},
		{"@daily", "Local", "spec.timeZone"},
	} {
		if field, err := Validate(c.schedule, c.zone); field != c.field || (err == nil) != (field == "") {
			t.Errorf("Check(%q, %s) = %s, error %v", c.schedule, c.zone, field, err)
		}
	}
}

func TestPlace(t *testing.T) {
	spec := hourly().Spec
	now := at("2026-11-25T10:15:00")
	if got, want := BackupPath(&spec, "0123456789", now), "prod/nightly/20261125T101500Z-01234567"; got != want {
		t.Errorf("Place = %s, want %s", got, want)
	}
	spec.Destination = Destination{Folder: "weekly"}
	if got, want := BackupPath(&spec, "0123456789", now), "fleet/weekly/nightly/20261125T101500Z-01234567"; got != want {
		t.Errorf("Place = %s, want %s", got, want)
	}
}
