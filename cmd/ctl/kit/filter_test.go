package kit

import (
	"strings"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
)

func TestMoment(t *testing.T) {
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Time{
		"36h":                       now.Add(-36 * time.Hour),
		"2026-07-30":                time.Date(2026, 7, 30, 0, 0, 0, 0, time.UTC),
		"2026-07-30T13:00:00+02:00": now.Add(-time.Hour),
	} {
		var m Moment
		if err := m.Set(value); err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		m.Resolve(now)
		if !m.Equal(want) {
			t.Errorf("%s is %s, want %s", value, m.Time, want)
		}
	}
	for _, value := range []string{"", "0s", "-5m", "tomorrow", "2026-13-01"} {
		if err := new(Moment).Set(value); err == nil {
			t.Errorf("Set(%q) succeeded, want an error", value)
		}
	}
}

// TestUnknownValues checks that a value that matches nothing in any log is rejected with suggestions.
func TestUnknownValues(t *testing.T) {
	env := &cli.Env{Name: "kubectl scute", Now: time.Now}
	for value, want := range map[string]string{
		"bogus": "`kubectl scute log schema` lists the types, `kubectl scute log grep PATTERN` searches for other words", "decidde": `did you mean "decided"?`, "dev.scute.move.requestd.v1": `did you mean "dev.scute.move.requested.v1"?`,
		"acknowledge": "no event type and no fact", "dev.scute.mvoe.*": "no event type and no fact",
		"dev.scute.mvoe.requested.v1": `did you mean "dev.scute.move.requested.v1"?`, "dev.scute.move.requested.1": `did you mean "dev.scute.move.requested.v1"?`,
		"dev.scute.teleport.requested.v1": "no event type and no fact", "dev.scute.move.tele*.v1": "no event type and no fact",
	} {
		f := Filter{Type: value}
		if err := f.Check(env); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--type %s: %v, want %s", value, err, want)
		}
	}
	for _, value := range []string{"decided", "dev.scute.*", "dev.scute.move.*", "*requested*", "dev.scute.run.started.v1", "all *", "dev.scute.move.teleported.v1", "dev.scute.move.requested.v27"} {
		f := Filter{Type: value}
		if err := f.Check(env); err != nil {
			t.Errorf("--type %s: %v", value, err)
		}
	}
	for _, f := range []Filter{{Kind: "moves"}, {Aggregate: "moev/fleet/a/1"}} {
		if err := f.Check(env); err == nil || !strings.Contains(err.Error(), "must be one of run, move, ") {
			t.Errorf("Check(%+v) = %v", f, err)
		}
	}
}
