package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestViolationsComeWithTheMinuteBefore(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r.started, r.now = now, func() time.Time { return now }
	r.note("log", "too old")
	now = now.Add(30 * time.Second)
	r.note("machine", "m: Running")
	r.say("fault", "#1")
	now = now.Add(45 * time.Second)
	r.violated(errors.New("quorum: lost"))
	want := `00:00:30.0  fault     #1
00:01:15.0  VIOLATION quorum: lost
--- the minute before it: faults, the logs' events, states of machines
  00:00:30.0  machine   m: Running
  00:00:30.0  fault     #1
--- end of the minute before: quorum
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := r.violations(); len(got) != 1 || got[0] != "quorum: lost" {
		t.Errorf("violations = %q, want the lost quorum", got)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-duration", "1m", "-seed", "5", "-faults", "moved,held"})
	if err != nil || o.duration != time.Minute || o.seed != 5 || len(o.kinds) != 2 {
		t.Errorf("parse = %+v, %v", o, err)
	}
	if o, err := parse(nil); err != nil || o.seed == 0 || o.duration != 5*time.Minute {
		t.Errorf("parse without arguments = %+v, %v, want the defaults", o, err)
	}
	for _, wrong := range [][]string{{"-faults", "nothing"}, {"-duration", "0s"}, {"now"}} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("parse(%v) = nil, want an error", wrong)
		}
	}
}
